//! Many stories that nobody thought of.

use crate::bed::{Bed, append, write};
use crate::lines::Talk;
use crate::replaced::{A, B, replace};
use std::collections::BTreeSet;
use std::fs;

/// Whatever is done to the files of a session: every record that lay there when somebody looked is
/// known, and once.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_done_to_files_every_record_is_known_once() {
    for seed in 0..4_u64 {
        let bed = Bed::new();
        let talk = Talk::new(1);
        let mut state = seed * 7919 + 17;
        let mut any = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).expect("small") % most
        };
        let (mut files, mut next) = ([vec![1, 2, 3], Vec::new()], 4);
        let (mut known, mut story) = (BTreeSet::new(), Vec::new());
        let places = [A, B].map(|project| bed.file(project, &talk.session));
        write(&places[0], talk.lines(1..=3));
        for step in 0..12 {
            let at = any(2);
            let (here, there) = (files[at].clone(), files[1 - at].clone());
            let deed = any(8);
            story.push((deed, at));
            let fresh: Vec<u32> = (next..).take(1 + any(3)).collect();
            let path = &places[at];
            let lines = |of: &[u32]| talk.lines(of.iter().copied());
            match deed {
                // Grown, most of the time.
                0..=2 if !here.is_empty() => {
                    append(path, lines(&fresh));
                    files[at].extend(&fresh);
                }
                // Cut back, and grown otherwise or not.
                3 if here.len() > 1 => {
                    files[at].truncate(here.len() / 2);
                    if any(2) == 0 {
                        files[at].extend(&fresh);
                    }
                    write(path, lines(&files[at]));
                }
                // Replaced by some of it, and more.
                4 => {
                    files[at].retain(|_| any(3) > 0);
                    files[at].extend(&fresh);
                    replace(path, lines(&files[at]));
                }
                // A copy of the other one.
                5 if !there.is_empty() => {
                    files[at].clone_from(&there);
                    files[at].extend(&fresh);
                    replace(path, lines(&files[at]));
                }
                // Moved.
                6 if !there.is_empty() => {
                    fs::create_dir_all(path.parent().expect("folder")).expect("folder");
                    fs::rename(&places[1 - at], path).expect("rename");
                    files[at] = there;
                    files[1 - at].clear();
                }
                // Gone, if the other is there.
                7 if !there.is_empty() && !here.is_empty() => {
                    fs::remove_file(path).expect("remove");
                    files[at].clear();
                }
                _ => {
                    files[at] = [here, fresh].concat();
                    write(path, lines(&files[at]));
                }
            }
            next += 4;
            known.extend(files.iter().flatten().copied());
            if any(3) == 0 {
                bed.pass().await
            } else {
                bed.cut_pass().await
            };
            let mut said = bed.texts(&talk.session).await;
            let mut want = talk.texts(known.iter().copied());
            said.sort();
            want.sort();
            assert_eq!(said, want, "seed {seed}, step {step}: {story:?}");
        }
    }
}
