//! Redacts host paths, secrets and terminal escapes from text, whole or streamed.
//!
//! A [`Redactor`] redacts whole texts, path fields and JSON trees. A [`TextStream`] redacts bytes as
//! they arrive and gives the same text, whatever the chunks: it holds back only the end that a match
//! could still reach. Secrets become placeholders such as `[redacted:github-token:1f3c]`, which are
//! equal for equal secrets; paths become relative to the root that contains them.
//!
//! ```
//! use narrows_sanitize::{Mode, Paths, Redactor, Secrets, TextStream};
//!
//! let mut paths = Paths::new();
//! paths.add_root("/srv/ada/work");
//! let mut secrets = Secrets::default();
//! secrets.add_known("correct-horse-battery");
//!
//! let mut redactor = Redactor::new(paths.clone(), secrets.clone());
//! assert_eq!(redactor.text("cat /srv/ada/work/src/main.rs", Mode::Text), "cat src/main.rs");
//! assert_eq!(redactor.field("/srv/ada/work"), ".");
//!
//! let mut stream = TextStream::new(paths, secrets);
//! let mut out = stream.push(b"login with correct-horse-").to_string();
//! out.push_str(&stream.push(b"battery\n"));
//! out.push_str(&stream.finish());
//! assert!(out.starts_with("login with [redacted:known-value:"));
//! ```
//!
//! Redacted text has a type of its own, [`Clean`]; text that was received is [`Raw`]. The crate knows
//! nothing of agents, sessions or events, does no I/O and reads no clock.
//!
//! The feature `unchecked-deserialize` lets `Clean` be deserialized from any string. It is for a
//! program that reads back its own redacted output, and opens the type for the whole dependency tree.

mod chars;
mod escapes;
mod json_string;
mod keyword_index;
mod normalize;
mod oneshot;
mod paths;
mod redactor;
mod report;
mod secrets;
mod stream_redactor;
mod text;
mod text_stream;
mod tree;

pub use json_string::decode as decode_json_string;
pub use oneshot::{sanitize_paths_in_text, strip_session_prefix};
pub use paths::{Mode, Paths};
pub use redactor::Redactor;
pub use redactor::partial::PartialLevel;
pub use report::RedactionCounts;
pub use secrets::{MIN_KEYWORD_LEN, MIN_KNOWN_LEN, Rule, RuleError, Secrets, UserRule};
pub use stream_redactor::{StreamRedactor, ends_with_placeholder};
pub use text::{Clean, Raw};
pub use text_stream::TextStream;
pub use tree::{Tree, is_path_key};

/// Replaces a part of a text that is left out.
pub const ELLIPSIS: &str = "…";
