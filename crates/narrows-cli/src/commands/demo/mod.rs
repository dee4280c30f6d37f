//! `narrows demo`: imports a sample session.

mod session;

use super::ingest;
use crate::args::{DataArgs, IngestArgs, RedactionArgs};
use crate::config::data_dir;
use crate::error::CliError;
use narrows::Format;
use std::io::{Write, stdout};

/// The label and the tag of the session.
const NAME: &str = "demo";

pub(crate) fn run(data: &DataArgs) -> Result<(), CliError> {
    let dir = data_dir(data)?.join(NAME);
    let file = session::write_to(&dir).map_err(CliError::cannot("write the sample session"))?;
    let ingested = ingest::run(&IngestArgs {
        data: data.clone(),
        format: Format::ClaudeHistory,
        label: Some(NAME.to_owned()),
        tags: vec![NAME.to_owned()],
        first: None,
        redaction: RedactionArgs::none(),
        file,
    });
    let _ = std::fs::remove_dir_all(dir);
    ingested?;
    writeln!(stdout().lock(), "`narrows show {NAME}` prints it, `narrows rm {NAME}` deletes it")
        .map_err(CliError::stdout)
}
