//! A session that was printed and is kept in a file: in any order, each answer counts once, with its
//! true numbers.

use crate::bed::{Bed, Parts, cases, fixtures, id_in, input};
use crate::live::send_at;
use narrows::usage::{Ledger, Totals};
use narrows::{Config, Given, Packets, Pipeline};
use narrows_engine::discovery::find;
use narrows_store::{StatsBy, StatsFilter};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Input, output, read from a cache, put into one.
type Tokens = [u64; 4];

/// What the records of one form of a session say.
#[derive(Debug, Default)]
struct Told {
    /// By message.
    answers: BTreeMap<String, Tokens>,
    /// What the ends of turns say beyond their answers.
    beyond: Tokens,
}

fn tokens(usage: &Value) -> Tokens {
    let names =
        ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    names.map(|name| usage[name].as_u64().unwrap_or(0))
}

fn each(a: Tokens, b: Tokens, op: fn(u64, u64) -> u64) -> Tokens {
    std::array::from_fn(|at| op(a[at], b[at]))
}

impl Told {
    /// Reads records; `settles` where the end of a turn tells what all of it used.
    fn read(&mut self, text: &str, settles: bool) {
        let mut turn = BTreeSet::new();
        let mut speaking = BTreeMap::new();
        for record in text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()) {
            let parent = record["parent_tool_use_id"].as_str().map(str::to_owned);
            let (message, usage) = match record["type"].as_str() {
                Some("assistant") => (&record["message"]["id"], &record["message"]["usage"]),
                Some("stream_event") => {
                    let event = &record["event"];
                    if event["type"] == "message_start" {
                        speaking.insert(parent.clone(), event["message"]["id"].clone());
                    }
                    if event["type"] != "message_delta" {
                        continue;
                    }
                    (speaking.get(&parent).unwrap_or(&Value::Null), &event["usage"])
                }
                Some("result") if settles && record["usage"].is_object() => {
                    let answered: Vec<Tokens> = std::mem::take(&mut turn)
                        .into_iter()
                        .filter_map(|message: String| self.answers.get(&message).copied())
                        .collect();
                    let sum = answered.iter().fold([0; 4], |sum, t| each(sum, *t, |a, b| a + b));
                    let more = each(tokens(&record["usage"]), sum, u64::saturating_sub);
                    if !answered.is_empty() {
                        self.beyond = each(self.beyond, more, |a, b| a + b);
                    }
                    continue;
                }
                _ => continue,
            };
            let synthetic = record["message"]["model"] == "<synthetic>";
            let Some(message) = message.as_str().filter(|_| usage.is_object() && !synthetic) else {
                continue;
            };
            let known = self.answers.entry(message.to_owned()).or_default();
            *known = each(*known, tokens(usage), u64::max);
            if parent.is_none() {
                turn.insert(message.to_owned());
            }
        }
    }

    /// All files of a kept session.
    fn read_all(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("folder") {
            let path = entry.expect("entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                self.read_all(&path);
            } else if name == "input.jsonl" || name.starts_with("agent-") {
                self.read(&fs::read_to_string(&path).unwrap_or_default(), false);
            }
        }
    }

    fn sum(&self) -> (u64, Tokens) {
        let sum = self.answers.values().fold(self.beyond, |sum, t| each(sum, *t, |a, b| a + b));
        (self.answers.len() as u64, sum)
    }
}

/// What is expected of a recorded session: of its file, of what was printed, of both.
fn expected(name: &str) -> [(u64, Tokens); 3] {
    let (mut kept, mut printed) = (Told::default(), Told::default());
    kept.read_all(&fixtures().join("claude-history").join(name));
    let text = String::from_utf8_lossy(&input(&format!("claude-stream/{name}"))).into_owned();
    // Older versions tell the truth with each answer.
    printed.read(&text, !name.starts_with("2.0"));
    let alone = [kept.sum(), printed.sum()];
    for (message, tokens) in printed.answers {
        kept.answers.entry(message).or_insert(tokens);
    }
    [alone[0], alone[1], kept.sum()]
}

async fn counted(parts: &Parts, id: &str) -> (u64, Tokens) {
    let rows = parts.store.stats(StatsFilter { by: StatsBy::Session, ..StatsFilter::default() });
    let rows = rows.await.expect("stats");
    let rows = rows.iter().filter(|row| row.name == id);
    rows.fold((0, [0; 4]), |sum, r| {
        let told = [r.input, r.output, r.cache_read, r.cache_write];
        (sum.0 + r.answers, each(sum.1, told, |a, b| a + b))
    })
}

/// Files of subagents.
fn agents(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            all.extend(agents(&path));
        } else if name.starts_with("agent-") {
            all.push(path);
        }
    }
    all
}

/// What the reader of files counts: `narrows usage`.
fn used(forms: &[&Path]) -> (u64, Tokens) {
    let mut totals = Totals::default();
    let mut read = BTreeSet::new();
    let mut sessions: Vec<(PathBuf, bool)> =
        forms.iter().map(|p| (p.to_path_buf(), false)).collect();
    while let Some((main, alone)) = sessions.pop() {
        let found = find(&main).expect("files");
        let config = Config { events_only: true, join: true, ..Config::default() };
        let (mut pipeline, mut ledger) = (Pipeline::new(config), Ledger::default());
        let (mut packets, mut steps) = (Packets::default(), Vec::new());
        let mut beside = found.beside().expect("files beside it");
        let bytes = fs::read(&main).expect("file");
        packets.push(&bytes, |given| {
            if let Given::Packet(packet) = &given {
                beside.before(packet.bytes, |given| pipeline.push(given, &mut steps));
            }
            pipeline.push(given, &mut steps);
        });
        packets.finish(|given| pipeline.push(given, &mut steps));
        beside.rest(|given| pipeline.push(given, &mut steps));
        pipeline.finish(&mut steps);
        let kept = pipeline.is_kept();
        steps.iter().for_each(|step| totals.take(&step.event, alone, kept, &mut ledger));
        // Subagents that nobody asked for are read alone, after all sessions.
        read.extend(found.subagents().map(Path::to_owned));
        if sessions.is_empty() && !alone {
            let kept = forms.iter().filter(|form| !form.ends_with("input.jsonl"));
            let all = kept.flat_map(|form| agents(form.parent().expect("a folder")));
            sessions.extend(all.filter(|path| !read.contains(path)).map(|path| (path, true)));
        }
    }
    [false, true].into_iter().fold((0, [0; 4]), |sum, subs| {
        let (answers, used) = totals.sum(subs);
        let told = [
            used.input_tokens,
            used.output_tokens,
            used.cached_read_tokens,
            used.cached_write_tokens,
        ];
        (sum.0 + answers as u64, each(sum.1, told.map(|n| n.unwrap_or(0)), |a, b| a + b))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn in_any_order_an_answer_counts_once_with_its_true_numbers() {
    let mut wrong = Vec::new();
    for case in cases("claude-stream") {
        let name = case.trim_start_matches("claude-stream/");
        let [file, live, both] = expected(name);
        for (form, steps, wanted) in [
            ("file", "f", file),
            ("live", "l", live),
            ("live, file", "lf", both),
            ("file, live", "fl", both),
        ] {
            let bed = Bed::new();
            let parts = bed.open();
            let mut forms = Vec::new();
            for step in steps.chars() {
                if step == 'l' {
                    send_at(&parts, "live", &input(&case), true, None).await;
                    forms.push(fixtures().join(&case).join("input.jsonl"));
                } else {
                    forms.push(bed.put(&format!("claude-history/{name}"), "-app"));
                }
                parts.catch_up(&bed.options).await;
            }
            let listed = parts.sessions().await;
            let labels: Vec<&str> = listed.iter().filter_map(|row| row.label.as_deref()).collect();
            // What is sent is listed. A printed fork has two names of its own.
            if labels.len() != 1 || steps != "f" && labels != ["live"] {
                wrong.push(format!("{name}, {form}: {labels:?}"));
            }
            let is_fork = listed.len() == 1 && listed.iter().any(|row| row.fork);
            let mut sum = (0, [0; 4]);
            for row in &listed {
                let (answers, told) = counted(&parts, &row.id).await;
                sum = (sum.0 + answers, each(sum.1, told, |a, b| a + b));
            }
            if sum != wanted || is_fork {
                wrong.push(format!("{name}, {form}: {sum:?}, not {wanted:?}; fork: {is_fork}"));
            }
            let forms: Vec<&Path> = forms.iter().map(PathBuf::as_path).collect();
            let totals = used(&forms);
            if totals != wanted {
                wrong.push(format!("{name}, {form}: usage {totals:?}, not {wanted:?}"));
            }
            parts.store.close().await;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_and_what_is_sent_of_it_later_are_one_session() {
    let name = "2.1-d-bash";
    let live = input(&format!("claude-stream/{name}"));
    let bed = Bed::new();
    bed.put(&format!("claude-history/{name}"), "-app");
    let parts = bed.open();
    parts.catch_up(&bed.options).await;
    let all = |by| StatsFilter { by, ..StatsFilter::default() };
    let before = parts.store.stats(all(StatsBy::Agent)).await.expect("stats");
    send_at(&parts, "fix-42", &live, true, None).await;
    parts.catch_up(&bed.options).await;
    let file = id_in(&live);
    assert_eq!(parts.labels().await, ["fix-42"]);
    let (shown, hidden) = (parts.row("fix-42").await, parts.row(&file).await);
    assert_eq!((hidden.copy_of, shown.copy_of), (Some(shown.id), None));
    assert!(!shown.fork && !hidden.fork);
    let after = parts.store.stats(all(StatsBy::Agent)).await.expect("stats");
    let of = |rows: &[narrows_store::StatsRow]| {
        rows.iter()
            .map(|r| (r.sessions, r.answers, r.output, r.calls, r.active_ms))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&after), of(&before));
    parts.store.close().await;
}
