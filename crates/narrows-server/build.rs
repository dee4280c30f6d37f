//! Embeds the page: packs the files of `web/dist` and writes the table that names them.

#[path = "src/web_ui/embed.rs"]
mod embed;

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/web_ui/embed.rs");
    println!("cargo::rerun-if-env-changed=NARROWS_WEB");
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let named = env::var_os("NARROWS_WEB").filter(|n| !n.is_empty());
    let dist = root.join(named.as_deref().unwrap_or("web/dist".as_ref()));
    if named.is_none() && root.join("web/package.json").is_file() {
        // Cargo takes a folder that is not there for one that has changed, and would build this
        // crate anew every time.
        let _ = fs::create_dir(&dist);
    }
    if dist.is_dir() {
        println!("cargo::rerun-if-changed={}", dist.display());
    }
    let (files, stray) = embed::folder(&dist)?;
    if files.is_empty() && named.is_some() {
        return Err(format!("NARROWS_WEB: there is no index.html in {}", dist.display()).into());
    }
    for name in stray {
        println!("cargo::warning=the page's file `{name}` is not in its folder `page`: left out");
    }
    let folder = out.join("page");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let mut table = "&[\n".to_owned();
    for (at, file) in files.iter().enumerate() {
        fs::write(folder.join(at.to_string()), &file.bytes)?;
        let embed::Packed { name, kind, tag, gzip, .. } = file;
        writeln!(
            table,
            "Embedded {{ name: {name:?}, kind: {kind:?}, tag: {tag:?}, gzip: {gzip}, \
             bytes: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/page/{at}\")) }},"
        )?;
    }
    table.push_str("]\n");
    fs::write(out.join("web_ui.rs"), table)?;
    Ok(())
}
