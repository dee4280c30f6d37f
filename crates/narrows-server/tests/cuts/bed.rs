//! A store, those who write into it, and ways to cut them off.

use narrows::{Config, Format, Items, Packets, Pipeline, Secrets};
use narrows_engine::ingest::{Arrival, Hidden, IngestReceipt, Intake, Reading};
use narrows_engine::live::Hub;
use narrows_store::{Error, NewSession, Options, Session, Store, Window};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// What ends between two packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The server is asked to end, and starts again.
    Term,
    /// It is gone without a word, and starts again; or another node goes on with its store.
    Kill,
    /// Nobody wrote for a while.
    Sweep,
    /// Nobody wrote for a while, and others needed the memory.
    Evict,
}

pub(crate) const CUTS: [Cut; 4] = [Cut::Term, Cut::Kill, Cut::Sweep, Cut::Evict];

/// How packets are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// With their places.
    Places,
    /// Each request with a key.
    Keys,
    /// The same; requests that were answered are sent again by their keys.
    KeysAgain,
    /// As they come, by somebody who knows of no cut.
    Blindly,
    /// In a body that stays open, which the cut tears within a packet.
    Open,
}

pub(crate) const HOWS: [How; 5] = [How::Places, How::Keys, How::KeysAgain, How::Blindly, How::Open];

/// A store and the program that writes it now.
#[derive(Debug)]
pub(crate) struct Bed {
    dir: TempDir,
    pub(crate) store: Store,
    hidden: Hidden,
    pub(crate) intake: Intake,
}

impl Bed {
    pub(crate) fn new() -> Bed {
        let dir = tempfile::tempdir().expect("folder");
        let store = Store::open(&dir.path().join("data"), &Options::default()).expect("store");
        let hidden = Hidden { secrets: Arc::new(secrets(&store)), ..Hidden::default() };
        let intake = Intake::new(store.clone(), Hub::new(store.clone()), hidden.clone());
        Bed { dir, store, hidden, intake }
    }

    /// All that lies in the store's folder.
    pub(crate) fn files(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.dir.path().join("data")).expect("data");
        let files = files.map(|entry| std::fs::read(entry.expect("entry").path()));
        files.filter_map(Result::ok).flatten().collect()
    }

    pub(crate) async fn session(&self) -> Session {
        self.store.create(NewSession::default()).await.expect("session").0
    }

    pub(crate) async fn cut(&mut self, cut: Cut) {
        let zero = Duration::ZERO;
        match cut {
            Cut::Term => self.intake.close().await,
            Cut::Kill => {}
            Cut::Sweep => return self.intake.evict_idle(zero, (usize::MAX, usize::MAX)).await,
            Cut::Evict => return self.intake.evict_idle(zero, (0, 0)).await,
        }
        let store = self.store.clone();
        self.intake = Intake::new(store.clone(), Hub::new(store), self.hidden.clone());
    }

    /// The items, as they are read.
    pub(crate) async fn items(&self, session: &Session) -> Vec<Value> {
        let window = self.store.items(session.key, Window::From(0), 100_000).await;
        let items = window.expect("items").items.into_iter().map(|row| row.item);
        settled(Items::from_parts(narrows::session::SessionInfo::default(), items))
    }

    /// Every row of the log, all of it.
    pub(crate) async fn rows(&self, session: &Session) -> String {
        let page = self.store.events_after(session.key, 0, 1 << 20, 1 << 30).await.expect("events");
        let mut all = Vec::new();
        for row in page.rows {
            all.extend_from_slice(&row.event);
            all.extend_from_slice(row.changes.as_deref().unwrap_or_default());
            all.extend_from_slice(row.activity.as_deref().unwrap_or_default());
        }
        let facts = self.store.session_row(&session.id).await.expect("row");
        format!("{}{facts:?}", String::from_utf8_lossy(&all))
    }

    /// What the core makes of the same packets, uncut.
    pub(crate) fn truth(&self, packets: &[Vec<u8>], format: Format, root: &str) -> Vec<Value> {
        let secrets = Arc::new(secrets(&self.store));
        let mut config = Config { format, secrets, ..Config::default() };
        if !root.is_empty() {
            config.paths.add_root(root);
        }
        let (mut split, mut pipeline) = (Packets::default(), Pipeline::new(config));
        let (mut steps, mut items) = (Vec::new(), Items::new());
        split.push(&packets.concat(), |given| pipeline.push(given, &mut steps));
        split.finish(|given| pipeline.push(given, &mut steps));
        pipeline.finish(&mut steps);
        steps.into_iter().flat_map(|step| step.changes).for_each(|change| items.apply(change));
        settled(items)
    }
}

fn secrets(store: &Store) -> Secrets {
    let mut secrets = Secrets::default();
    secrets.set_key(store.mark_key());
    secrets
}

fn settled(mut items: Items) -> Vec<Value> {
    items.settle();
    let mut sorted: Vec<&narrows::Item> = items.iter().collect();
    sorted.sort_by_key(|item| item.order);
    let json = |item: &&narrows::Item| {
        let mut text = Vec::new();
        narrows::json::print(&mut text, *item).expect("print");
        serde_json::from_slice(&text).expect("JSON")
    };
    sorted.iter().map(json).collect()
}

/// A session that is sent.
#[derive(Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) packets: &'a [Vec<u8>],
    pub(crate) session: Session,
    pub(crate) how: How,
    pub(crate) format: Format,
    pub(crate) root: String,
    /// The requests that were answered: the places of their packets.
    asked: Vec<(usize, usize)>,
    /// How often something was to be sent again.
    pub(crate) refused: usize,
}

impl<'a> Sender<'a> {
    pub(crate) async fn new(
        bed: &Bed,
        packets: &'a [Vec<u8>],
        how: How,
        format: Format,
        root: &str,
    ) -> Sender<'a> {
        let (session, root) = (bed.session().await, root.to_owned());
        Sender { packets, session, how, format, root, asked: Vec::new(), refused: 0 }
    }

    fn reading(&self, end: bool) -> Reading {
        let roots = Some(self.root.clone()).filter(|r| !r.is_empty()).into_iter().collect();
        let (format, arrival) = (self.format, Arrival::None);
        Reading { format, arrival, end, roots, ..Reading::default() }
    }

    async fn ask(
        &self,
        bed: &Bed,
        reading: Reading,
        packets: &[Vec<u8>],
    ) -> Result<IngestReceipt, Error> {
        let mut take = bed.intake.open(&self.session, reading).await?;
        take.push(&packets.concat()).await?;
        take.finish().await
    }

    /// Sends the packets from one place to another, and again what the server asks for.
    pub(crate) async fn send(&mut self, bed: &Bed, from: usize, until: usize, end: bool) {
        let mut reading = self.reading(end);
        let key = || Some(format!("{from}-{until}-{end}"));
        match self.how {
            How::Places | How::Open => reading.first = Some(from as u64 + 1),
            How::Keys | How::KeysAgain => reading.key = key(),
            How::Blindly => {}
        }
        // More than once only where keys are sent one by one.
        for _ in 0..3 {
            match self.ask(bed, reading.clone(), &self.packets[from..until]).await {
                Ok(_) => {
                    self.asked.push((from, until));
                    return;
                }
                Err(Error::Resend { acknowledged, key }) => {
                    self.refused += 1;
                    let acknowledged = usize::try_from(acknowledged).expect("small");
                    assert!(acknowledged < from, "{acknowledged} before {from}");
                    if self.how == How::KeysAgain {
                        self.again(bed, &key.expect("the key of a request")).await;
                        continue;
                    }
                    // The one step that is documented: all of it, in one request.
                    let mut all = self.reading(end);
                    all.first = Some(acknowledged as u64 + 1);
                    let answer = self.ask(bed, all, &self.packets[acknowledged..until]).await;
                    assert_eq!(answer.expect("what was sent again").read, until as u64);
                    self.asked.push((from, until));
                    return;
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("{:?} stands still at {from}", self.how);
    }

    /// Sends requests again by their keys, from this one on.
    async fn again(&self, bed: &Bed, key: &str) {
        let asked =
            self.asked.iter().map(|(from, until)| (format!("{from}-{until}-false"), from, until));
        let mut found = false;
        for (name, from, until) in asked.skip_while(|(name, ..)| name != key) {
            found = true;
            let mut reading = self.reading(false);
            reading.key = Some(name);
            let answer = self.ask(bed, reading, &self.packets[*from..*until]).await;
            answer.unwrap_or_else(|e| panic!("{key}: {e}"));
        }
        assert!(found, "{key} was never answered");
    }

    /// Sends what the cut is to come after: as many packets, and, in an open body, part of the next.
    pub(crate) async fn before(&mut self, bed: &Bed, at: usize, each: bool) {
        if self.how == How::Open {
            let mut take = bed.intake.open(&self.session, self.reading(false)).await.expect("open");
            take.push(&self.packets[..at].concat()).await.expect("push");
            if let Some(next) = self.packets.get(at) {
                take.push(&next[..next.len() * 2 / 3]).await.expect("push");
            }
            for _ in 0..70 {
                take.wait_oldest().await.expect("kept");
            }
            return;
        }
        // The last ones come one by one, as agents say them.
        let many = if each { 0 } else { at.saturating_sub(3) };
        if many > 0 {
            self.send(bed, 0, many, false).await;
        }
        for n in many..at {
            self.send(bed, n, n + 1, false).await;
        }
    }

    /// Goes on after the cut, to the end.
    pub(crate) async fn after(&mut self, bed: &Bed, at: usize) {
        let all = self.packets.len();
        let mut from = at;
        if self.how == How::Open {
            // Whoever has no answer asks.
            let sources = bed.store.sources(self.session.key).await.expect("sources");
            from = sources.iter().find(|s| s.number == 0).map_or(0, |s| s.rest as usize);
        }
        let next = (from + 1).min(all);
        if next > from {
            self.send(bed, from, next, false).await;
        }
        self.send(bed, next, all, true).await;
    }
}
