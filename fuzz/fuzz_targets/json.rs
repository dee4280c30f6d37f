//! What `serde_json` accepts, the index accepts; what only the index accepts is one of the listed
//! liberties.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows::json::Index;

fuzz_target!(|text: &str| {
    let ours = Index::default().read(text).map(|_| ());
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => assert!(ours.is_ok(), "refused: {ours:?}"),
        // Lone surrogates and odd numbers are the only things that we take and it does not.
        Err(e) if ours.is_ok() => {
            let said = e.to_string();
            let liberty = ["surrogate", "number out of range", "recursion", "unexpected end of hex"];
            assert!(liberty.iter().any(|l| said.contains(l)), "took what is no JSON: {said}");
        }
        Err(_) => {}
    }
});
