//! Old paths and names, for modules that still use them. To be deleted with its last user.

#![allow(unused_imports, reason = "some are used in doc links only")]

pub(crate) mod batch {
    pub(crate) use crate::append::context::AppendContext as Batch;
}
pub(crate) mod blob {
    pub(crate) use crate::blobs::{is_named, is_sound, repair_metadata as mend};
}
pub(crate) mod connection {
    pub(crate) use crate::db::sqlite::connection::{
        check_version, open_checkpointer as open_mover, open_reader,
    };
    pub(crate) use crate::migrations::{SCHEMA, check_schema, migrate, open_writer};
}
pub(crate) mod dir {
    pub(crate) use crate::data_dir::*;
}
pub(crate) mod era {
    pub(crate) use crate::buckets::{REVISION_BITS as TOUCHED, TIME_BITS as UPDATED};
}
pub(crate) mod files {
    pub(crate) use crate::sources::files::{
        MISSING_CHECKSUM as GONE, records_checksum as records_sum,
        records_key_checksum as place_sum,
    };
}
pub(crate) mod index {
    pub(crate) use crate::search::index::{
        INDEX_INCOMPLETE as ASTRAY, finds_items as leads, index_slice as some, search_terms as said,
    };
}
pub(crate) mod link {
    pub(crate) use crate::db::sqlite::connection::CommitHook as AfterCommits;
}
pub(crate) mod names {
    pub(crate) use crate::ids::*;
}
pub(crate) mod pack {
    pub(crate) use crate::compress::decode_text as text;
}
pub(crate) mod prompt {
    pub(crate) use crate::items::first_prompt::*;
}
pub(crate) mod rows {
    pub(crate) use crate::append::item_write::{
        EncodedItemWrite as RowWrite, write_items as write, write_tool_call as keep_call,
    };
    pub(crate) use crate::items::derived::tool_call_row as call;
}
pub(crate) mod session_row {
    pub(crate) use crate::sessions::row::empty_info;
}
pub(crate) mod source {
    pub(crate) use crate::sources::checkpoint::SourceMark;
}
pub(crate) mod tail {
    pub(crate) use crate::items::overlay::LogOverlay as Tail;
}
pub(crate) mod threes {
    pub(crate) use crate::search::trigrams::TrigramSet as Threes;
}
pub(crate) mod which {
    pub(crate) use crate::items::select::{ReadLimit as Most, Which, select as take};
}
