//! Where the packets of sessions come from: source checkpoints, files and excluded projects.

mod exclusion;
