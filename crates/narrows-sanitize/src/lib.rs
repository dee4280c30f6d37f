//! Redacts host paths, secrets and terminal escapes from text.
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
pub use secrets::{MIN_KEYWORD, MIN_KNOWN, Rule, RuleError, Secrets, UserRule};
pub use stream_redactor::{StreamRedactor, ends_with_placeholder};
pub use text::{Clean, Raw};
pub use text_stream::TextStream;
pub use tree::{Tree, is_path_key};

/// Stands for the part of a text that is left out.
pub const ELLIPSIS: &str = "…";
