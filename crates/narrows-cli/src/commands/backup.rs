//! `narrows backup` and `narrows restore`.

use crate::args::{BackupArgs, RestoreArgs};
use crate::settings::data_dir;
use crate::{Fault, fault};
use std::io::{Error, Write, stdout};

fn failed(error: narrows_store::Error) -> Fault {
    Fault::new("")(Error::other(error))
}

pub(crate) fn backup(args: &BackupArgs) -> Result<(), Fault> {
    if args.file.as_os_str() == "-" {
        return Err(fault("a backup needs a file: it cannot be written to standard output"));
    }
    let bytes = narrows_store::backup(&data_dir(&args.data)?, &args.file).map_err(failed)?;
    let file = args.file.display();
    writeln!(stdout().lock(), "{file}: {bytes} bytes").map_err(Fault::new("standard output"))
}

pub(crate) fn restore(args: &RestoreArgs) -> Result<(), Fault> {
    let sessions = narrows_store::restore(&args.file, &data_dir(&args.data)?).map_err(failed)?;
    let word = if sessions == 1 { "session" } else { "sessions" };
    writeln!(stdout().lock(), "{sessions} {word} restored").map_err(Fault::new("standard output"))
}
