//! `narrows backup` and `narrows restore`.

use crate::args::{BackupArgs, RestoreArgs};
use crate::config::data_dir;
use crate::error::CliError;
use std::io::{Write, stdout};

pub(crate) fn backup(args: &BackupArgs) -> Result<(), CliError> {
    if args.file.as_os_str() == "-" {
        return Err(CliError::new("cannot write a backup to standard output").hint("name a file"));
    }
    let bytes = narrows_store::backup(&data_dir(&args.data)?, &args.file).map_err(CliError::new)?;
    writeln!(stdout().lock(), "{}: {bytes} bytes", args.file.display()).map_err(CliError::stdout)
}

pub(crate) fn restore(args: &RestoreArgs) -> Result<(), CliError> {
    let sessions =
        narrows_store::restore(&args.file, &data_dir(&args.data)?).map_err(CliError::new)?;
    let plural = if sessions == 1 { "" } else { "s" };
    writeln!(stdout().lock(), "{sessions} session{plural} restored").map_err(CliError::stdout)
}
