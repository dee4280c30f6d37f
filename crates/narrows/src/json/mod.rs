//! Parses JSON without building a tree of values, and writes it. Not part of the public API.
//!
//! [`Index`] checks one text and records the position of each value; [`Json`] walks these records. It
//! accepts what agents write and strict parsers reject (lone surrogates, repeated keys, any depth)
//! and rejects everything else with a reason and a position. It never recurses.

mod decode;
mod index;
mod node;
mod writer;

pub use decode::decode;
pub use index::{Index, ParseError};
pub use node::{Doc, Json, Kind};
#[doc(hidden)]
pub use writer::to_writer as print;
pub use writer::{SerializeError, to_writer};
