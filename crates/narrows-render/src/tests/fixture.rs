//! Fixtures of the core as sessions.

use crate::html::BlobSource;
use crate::nesting::ItemSource;
use crate::session_header::SessionHeader;
use narrows::adapter::Blob;
use narrows::tool::Image;
use narrows::{Beside, Config, Given, Item, Items, Packets, Pipeline};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

pub(super) struct RecordedSession {
    pub(super) items: Vec<Item>,
    pub(super) info: String,
    pub(super) blobs: Vec<Blob>,
}

impl ItemSource for RecordedSession {
    fn items(&self, each: &mut dyn FnMut(Item) -> io::Result<()>) -> io::Result<()> {
        self.items.iter().cloned().try_for_each(each)
    }
}

impl BlobSource for RecordedSession {
    fn image_bytes(&self, image: &Image) -> Option<Vec<u8>> {
        self.blobs.iter().find(|blob| blob.hash == image.blob).map(|blob| blob.bytes.clone())
    }
}

impl RecordedSession {
    /// Creates a session of these items.
    pub(super) fn of(items: Vec<Item>) -> RecordedSession {
        RecordedSession { items, info: "{}".to_owned(), blobs: Vec::new() }
    }

    /// Runs a case through the pipeline, with its subagent files.
    pub(super) fn read(name: &str) -> RecordedSession {
        let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let case = match name {
            "made" => here.join("tests/render/made"),
            _ => here.join("../narrows/tests/fixtures").join(name),
        };
        let input = fs::read(case.join("input.jsonl")).unwrap();
        let mut subagents = subagent_files(&case, &input);
        let mut config = Config::default();
        if let Ok(text) = fs::read_to_string(case.join("options.json")) {
            let options: serde_json::Value = serde_json::from_str(&text).unwrap();
            if let Some(root) = options["root"].as_str() {
                config.paths.add_root(root);
            }
        }
        let (mut packets, mut pipeline) = (Packets::default(), Pipeline::new(config));
        let mut steps = Vec::new();
        packets.push(&input, |given| {
            if let Given::Packet(packet) = &given {
                subagents.before(packet.bytes, |given| pipeline.push(given, &mut steps));
            }
            pipeline.push(given, &mut steps);
        });
        packets.finish(|given| pipeline.push(given, &mut steps));
        subagents.rest(|given| pipeline.push(given, &mut steps));
        pipeline.finish(&mut steps);
        let (mut items, mut blobs) = (Items::new(), Vec::new());
        for step in steps {
            step.changes.into_iter().for_each(|change| items.apply(change));
            blobs.extend(step.blobs);
        }
        let mut list: Vec<Item> = items.iter().cloned().collect();
        list.sort_by_key(|item| item.order);
        RecordedSession { items: list, info: serde_json::to_string(items.info()).unwrap(), blobs }
    }

    pub(super) fn header(&self) -> SessionHeader {
        let mut header = SessionHeader {
            id: "7f3k2m9x".to_owned(),
            info: serde_json::from_str(&self.info).unwrap(),
            ..SessionHeader::default()
        };
        header.set_bounds(self.items.first(), self.items.last());
        header
    }
}

fn subagent_files(case: &Path, input: &[u8]) -> Beside {
    let mut subagents = Beside::default();
    let mut calls: HashMap<String, String> =
        input.split(|c| *c == b'\n').filter_map(narrows::adapter::launched).collect();
    let (mut folders, mut agents) = (vec![case.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let stem = name.strip_prefix("agent-").and_then(|n| n.split('.').next());
            match stem {
                _ if path.is_dir() => folders.push(path),
                Some(id) if name.ends_with(".meta.json") => {
                    let meta: serde_json::Value =
                        serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                    calls.insert(id.to_owned(), meta["toolUseId"].as_str().unwrap().to_owned());
                }
                Some(id) if path.extension().is_some_and(|e| e == "jsonl") => {
                    agents.push((id.to_owned(), path))
                }
                _ => {}
            }
        }
    }
    agents.sort();
    for (id, path) in agents {
        if let Some(call) = calls.get(&id) {
            subagents.add(call.as_str(), fs::read(path).unwrap());
        }
    }
    subagents
}
