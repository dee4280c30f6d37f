//! Any text is cleaned, and a planted root does not survive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows::Paths;
use narrows::sanitize::Mode;

fuzz_target!(|text: &str| {
    let mut paths = Paths::new();
    paths.add_root("/srv/run/x1");
    for mode in [Mode::Text, Mode::Body] {
        let planted = paths.text(&format!("{text} /srv/run/x1/a"), mode).into_owned();
        assert!(!planted.ends_with("/srv/run/x1/a"));
    }
    let _ = paths.field(text);
});
