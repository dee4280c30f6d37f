//! What is printed can be read back, and a session goes on after a cut as if nothing had happened.
#![cfg(feature = "stored")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use narrows::event::{Malformed, Position};
use narrows::id::EventId;
use narrows::view::{self, Activity, ActivityConfig};
use narrows::{
    Body, Change, Config, Event, Format, Framed, Item, Items, Packet, Packets, Paths, Pipeline,
    PrintedEvent, Step, stored,
};
use serde::Serialize;
use std::fs;
use std::path::Path;

fn text(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap()
}

fn row(event: &Event) -> String {
    text(&PrintedEvent::new(7, "s", event))
}

fn activity() -> ActivityConfig {
    ActivityConfig { work_order_id: "w".to_owned(), run_id: "r".to_owned(), interval_ms: 1000 }
}

fn header(items: &Items) -> String {
    String::from_utf8(stored::print_info(items.info())).unwrap()
}

/// The items as they come out of a store.
fn kept(items: &Items) -> Items {
    let info = stored::info(&header(items)).unwrap();
    let list: Vec<Item> = items.iter().map(|i| stored::item(&text(i)).unwrap()).collect();
    let mut kept = Items::from_parts(info, list);
    kept.set_next_order(items.next_order());
    kept
}

#[test]
fn what_is_printed_is_read_back() {
    for case in common::cases() {
        let name = case.display();
        let steps = common::run_case(&case, common::config(&case));
        let (mut first, mut second) = (Activity::new(activity()), Activity::new(activity()));
        let (mut one, mut two) = (Vec::new(), Vec::new());
        let mut items = Items::new();
        let mut alone: Vec<Item> = Vec::new();
        for (seq, step) in (1..).zip(&steps) {
            let printed = row(&step.event);
            let read = stored::event(&printed).unwrap_or_else(|e| panic!("{name}: {e}\n{printed}"));
            assert_eq!(printed, row(&read), "{name}");
            let changes = || stored::changes(&text(&step.changes)).unwrap();
            let told = view::packets(&step.event, || step.changes.clone());
            assert_eq!(text(&told), text(&view::packets(&read, changes)), "{name}");
            first.push(seq, &step.event, &mut one);
            second.push(seq, &read, &mut two);

            let printed = text(&step.changes);
            let read = stored::changes(&printed).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(printed, text(&read), "{name}");
            for (change, read) in step.changes.iter().zip(read) {
                assert_eq!(change.item(), read.item());
                take(&mut alone, &read);
                items.apply(change.clone());
            }
        }
        first.finish(0, &mut one);
        second.finish(0, &mut two);
        assert_eq!(text(&one), text(&two), "{name}");

        for (item, alone) in items.iter().zip(&alone) {
            let read = stored::item(&text(item)).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(text(item), text(&read), "{name}");
            assert_eq!(text(item), text(alone), "{name}");
            assert_eq!(item.is_open(), read.is_open(), "{name}");
        }
        assert_eq!(items.iter().count(), alone.len(), "{name}");
        assert_eq!(header(&items), header(&kept(&items)), "{name}");
        let plain = text(items.info());
        assert_eq!(plain, text(&stored::info(&plain).unwrap()), "{name}");
    }
}

/// Keeps items one by one, as a store does.
fn take(items: &mut Vec<Item>, change: &Change) {
    let Some(id) = change.item() else { return };
    let at = items.iter().position(|item| item.id == *id);
    match (at, change) {
        (Some(at), Change::Remove { .. }) => {
            items.remove(at);
        }
        (Some(at), change) => items[at].apply(change.clone()),
        (None, Change::Put { item }) => items.push((**item).clone()),
        (None, _) => {}
    }
}

#[test]
fn numbers_and_nulls_are_read_to_the_last_bit() {
    let info = r#"{"status":"idle","error":null,"agent":null,"version":null,"model":null,"mode":null,"title":null,"cwd":null,"nativeId":null,"turns":18446744073709551615,"answers":0,"contextUsed":null,"contextSize":null,"costUsd":0.009878999999999999,"unknown":0,"malformed":0}"#;
    assert_eq!(text(&stored::info(info).unwrap()), info);
    for cost in ["5e-324", "1.7976931348623157e+308", "0.30000000000000004", "12.0"] {
        let info = info.replace("0.009878999999999999", cost);
        assert_eq!(text(&stored::info(&info).unwrap()), info);
    }
    let call = r#"{"type":"tool_call_start","seq":7,"sessionId":"s","id":"3-9.1","timestamp":null,"toolCallId":"c","toolName":"edit","kind":"edit","isTodo":false,"input":{"a": 1e400,"a":[18446744073709551616 ,-0]},"rawOutputAppend":"","isNewFile":null,"diagnostics":null}"#;
    assert_eq!(row(&stored::event(call).unwrap()), call);
    for bad in ["", "{}", r#"{"type":"odd","id":"1.0"}"#, r#"{"type":"notice","id":"x"}"#] {
        assert!(stored::event(bad).is_err());
        assert!(stored::item(bad).is_err());
        assert!(stored::changes(&format!("[{bad}]")).is_err() || bad.is_empty());
    }
}

#[test]
fn every_reason_for_a_bad_line_is_known() {
    let sources = [
        include_str!("../src/json/index.rs"),
        include_str!("../src/adapter/salvage.rs"),
        include_str!("../src/frame/packets.rs"),
        include_str!("../src/subagent_files.rs"),
    ];
    let mut found = 0;
    for line in sources.iter().flat_map(|s| s.lines()) {
        let told = ["reason: ", "reason = ", "(packet, ", "(reason, length) = ("];
        if !told.iter().any(|t| line.contains(t)) {
            continue;
        }
        for reason in line.split('"').skip(1).step_by(2).filter(|r| *r != "text") {
            let event = format!(
                r#"{{"type":"malformed","seq":7,"sessionId":"s","id":"1.0","timestamp":null,"reason":"{reason}","position":{{"line":1,"column":0,"offset":0}},"length":1}}"#
            );
            assert_eq!(row(&stored::event(&event).unwrap()), event);
            found += 1;
        }
    }
    assert!(found > 15, "{found}");
}

/// A packet that outlives its source.
enum Owned {
    Packet { bytes: Vec<u8>, position: Position, source: u32, parent: Option<String> },
    Fault(Malformed),
}

impl Owned {
    fn give(&self, pipeline: &mut Pipeline, steps: &mut Vec<Step>) {
        pipeline.push(
            match self {
                Owned::Packet { bytes, position, source, parent } => Framed::Packet(Packet {
                    source: *source,
                    parent: parent.as_deref(),
                    ..Packet::new(bytes, *position)
                }),
                Owned::Fault(fault) => Framed::Fault(fault.clone()),
            },
            steps,
        );
    }

    fn place(&self) -> (u32, u64) {
        match self {
            Owned::Packet { position, source, .. } => (*source, position.line.max(1)),
            Owned::Fault(fault) => (fault.source, fault.position.line.max(1)),
        }
    }
}

impl From<Framed<'_>> for Owned {
    fn from(given: Framed<'_>) -> Self {
        match given {
            Framed::Packet(p) => Owned::Packet {
                bytes: p.bytes.to_vec(),
                position: p.position,
                source: p.source,
                parent: p.parent.map(str::to_owned),
            },
            Framed::Fault(fault) => Owned::Fault(fault),
        }
    }
}

/// What a case reads, in order.
fn packets(case: &Path) -> Vec<Owned> {
    let input = fs::read(case.join("input.jsonl")).unwrap();
    let (mut beside, _) = common::beside(case, &input);
    let mut list: Vec<Owned> = Vec::new();
    let mut packets = Packets::default();
    packets.push(&input, |given| {
        if let Framed::Packet(packet) = &given {
            beside.before(packet.bytes, |given| list.push(given.into()));
        }
        list.push(given.into());
    });
    packets.finish(|given| list.push(given.into()));
    beside.rest(|given| list.push(given.into()));
    list
}

/// The state of a run after one packet.
struct Mark {
    steps: usize,
    rest: bool,
    paths: Paths,
    format: Format,
}

/// A run without a cut, and what a server would know after each packet.
struct Run {
    packets: Vec<Owned>,
    marks: Vec<Mark>,
    steps: Vec<Step>,
}

impl Run {
    fn new(case: &Path, join: bool) -> Run {
        let packets = packets(case);
        let mut pipeline = Pipeline::new(Config { join, ..common::config(case) });
        let (mut steps, mut marks) = (Vec::new(), Vec::new());
        let mark = |pipeline: &Pipeline, steps: &Vec<Step>| Mark {
            steps: steps.len(),
            rest: pipeline.is_at_rest(),
            paths: pipeline.paths().clone(),
            format: pipeline.format(),
        };
        marks.push(mark(&pipeline, &steps));
        for (at, packet) in packets.iter().enumerate() {
            packet.give(&mut pipeline, &mut steps);
            if at % 3 == 0 {
                pipeline.flush(&mut steps);
            }
            marks.push(mark(&pipeline, &steps));
        }
        pipeline.finish(&mut steps);
        Run { packets, marks, steps }
    }

    /// What comes out when the run is cut after `cut` packets and goes on in a new process.
    fn resumed(&self, case: &Path, cut: usize, join: bool) -> (Items, Vec<Step>) {
        let from = (0..=cut).rev().find(|at| self.marks[*at].rest).unwrap();
        let mark = &self.marks[cut];
        let before = &self.steps[..mark.steps];
        let mut items = kept(&common::items(before));
        let config =
            Config { format: mark.format, paths: mark.paths.clone(), join, ..common::config(case) };
        let mut last: Vec<EventId> = Vec::new();
        for step in before {
            last.retain(|id| id.source != step.event.id.source);
            last.push(step.event.id);
        }
        let since = common::items(&self.steps[..self.marks[from].steps]).next_order();
        let mut pipeline = if from == cut {
            Pipeline::resume(config, &items, last)
        } else {
            Pipeline::reread(config, &items, last, since)
        };
        for packet in &self.packets[..cut] {
            let (source, line) = packet.place();
            pipeline.was_read(source, line);
        }
        let mut steps = Vec::new();
        for (at, packet) in self.packets.iter().enumerate().skip(from) {
            packet.give(&mut pipeline, &mut steps);
            if at % 3 == 0 {
                pipeline.flush(&mut steps);
            }
            assert!(at >= cut || steps.is_empty(), "what was read before gave a step");
        }
        pipeline.finish(&mut steps);
        for change in steps.iter().flat_map(|s| &s.changes) {
            items.apply(change.clone());
        }
        (items, steps)
    }
}

/// Where the law does not hold, and why: news of a call that only wrote the todo list come after it
/// ended. It has no item, so that nobody knows it any more.
const EXCEPT: [&str; 1] = ["odd-todos-missing-in-update"];

fn cut_everywhere(join: bool) {
    let (mut cuts, mut rests) = (0, 0);
    let mut wrong: Vec<String> = Vec::new();
    for case in common::cases() {
        if EXCEPT.iter().any(|name| case.ends_with(name)) {
            continue;
        }
        let run = Run::new(&case, join);
        let whole = common::items(&run.steps);
        let want: Vec<String> = whole.ordered().into_iter().map(text).collect();
        let every = run.packets.len() / 40 + 1;
        for cut in (0..=run.packets.len()).step_by(every) {
            // What waits to be joined is not read yet: a server lets go of it before it stops.
            if join && (cut == 0 || (cut - 1) % 3 != 0) {
                continue;
            }
            let (items, steps) = run.resumed(&case, cut, join);
            cuts += 1;
            rests += usize::from(run.marks[cut].rest);
            let got: Vec<String> = items.ordered().into_iter().map(text).collect();
            let same = want == got && text(whole.info()) == text(items.info());
            // What is known of the session may be told once more.
            let rows = |steps: &[Step]| {
                let news = |s: &&Step| !matches!(s.event.body, Body::SessionInfo(_));
                steps.iter().filter(news).map(|s| row(&s.event)).collect::<Vec<_>>()
            };
            let events = rows(&run.steps[run.marks[cut].steps..]) == rows(&steps);
            if !same || !events {
                let what = if same { "events" } else { "items" };
                let rest = if run.marks[cut].rest { "at rest" } else { "read again" };
                wrong.push(format!("{} cut at {cut}, {rest}: {what}", case.display()));
            }
        }
    }
    assert!(cuts > 1000 && rests > cuts / 3, "{rests} of {cuts} cuts are at rest");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_fixture_goes_on_after_a_cut() {
    cut_everywhere(false);
}

#[test]
fn every_fixture_goes_on_after_a_cut_when_pieces_are_joined() {
    cut_everywhere(true);
}

#[test]
fn activity_goes_on_after_a_cut() {
    let mut wrong: Vec<String> = Vec::new();
    for case in common::cases() {
        let steps = common::run_case(&case, common::config(&case));
        for cut in (0..=steps.len()).step_by(steps.len() / 20 + 1) {
            let (before, after) = steps.split_at(cut);
            let since = turn_began(before);
            let events = before[since..].iter().map(|s| stored::event(&row(&s.event)).unwrap());
            let items = kept(&common::items(before));
            let mut resumed = Activity::resume(activity(), &items, events);
            let mut uncut = Activity::new(activity());
            before.iter().for_each(|s| uncut.push(0, &s.event, &mut Vec::new()));
            let (mut want, mut got) = (Vec::new(), Vec::new());
            for step in after {
                uncut.push(1, &step.event, &mut want);
                resumed.push(1, &step.event, &mut got);
            }
            uncut.finish(2, &mut want);
            resumed.finish(2, &mut got);
            if text(&want) != text(&got) {
                wrong.push(format!("{} cut at {cut}", case.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Where the last turn began: at the first prompt after an answer.
fn turn_began(steps: &[Step]) -> usize {
    let (mut began, mut answered) = (0, false);
    for (at, step) in steps.iter().enumerate() {
        match &step.event.body {
            Body::UserMessage(_) if step.event.parent.is_none() && answered => {
                (began, answered) = (at, false);
            }
            Body::PromptResponse(_) => answered = true,
            _ => {}
        }
    }
    began
}
