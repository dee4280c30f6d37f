//! Reading JSON without building a tree of values, and printing it.
//!
//! [`Index`] checks one text and notes where each value stands; [`Json`] walks those notes.
//! It accepts what agents really write and strict readers refuse (lone surrogates, repeated keys,
//! any depth) and refuses everything else with a reason and a position. It never recurses.

mod decode;
mod index;
mod node;
mod print;

pub use decode::decode;
pub use index::{Index, Syntax};
pub use node::{Doc, Json, Kind};
pub use print::{Error, print};
