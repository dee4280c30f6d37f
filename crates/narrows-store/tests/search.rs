//! Search: an item matches if it contains every term, in any case, also within words.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, session, temp_store, text_item, wait_for_maintenance};
use narrows_store::{Error, Hit, Query, Sight, Store};
use serde_json::json;
use std::collections::BTreeSet;

fn query(text: &str) -> Query {
    Query { text: text.to_owned(), limit: 100, ..Query::default() }
}

async fn hits(store: &Store, query: Query) -> Vec<Hit> {
    store.search(query).await.unwrap().hits
}

/// The ids of matching items, sorted.
async fn found(store: &Store, text: &str) -> Vec<String> {
    let mut ids: Vec<String> =
        hits(store, query(text)).await.into_iter().map(|hit| hit.item_id).collect();
    ids.sort();
    ids
}

const SAID: [(&str, &str); 12] = [
    ("code", "fn main() -> Result<()> { foo_bar(x)?; }"),
    ("other", "let foobar = main; // a - b, 5 > 3"),
    ("cjk", "日本語の全文検索は難しい"),
    ("korean", "검색 기능"),
    ("emoji", "done 🎉 and 👩‍💻 too"),
    ("umlaut", "Größe ÄNDERN über Straße"),
    ("greek", "ΑΘΗΝΑ και Οδός"),
    ("cyrillic", "Привет МИР"),
    ("quotes", "he said \"hello world\" and it's 100% a*b (NEAR) x:y ^z"),
    ("apart", "world and then hello"),
    ("lines", "first line\nsecond line"),
    ("short", "ab c"),
];

async fn said(store: &Store) -> TestSession {
    let mut book = TestSession::new(store, "said").await;
    for (id, text) in SAID {
        book.say(id, text);
    }
    book.keep(store).await;
    book
}

/// Queries and the items that match.
const LOOKED_FOR: [(&str, &[&str]); 35] = [
    ("fn main(", &["code"]),
    ("main", &["code", "other"]),
    ("->", &["code"]),
    ("foo_bar", &["code"]),
    ("oo_b", &["code"]),
    ("foobar", &["other"]),
    ("Result<()>", &["code"]),
    ("- b,", &["other"]),
    ("全文検索", &["cjk"]),
    ("検索は", &["cjk"]),
    ("検索", &["cjk"]),
    ("難", &["cjk"]),
    ("검색", &["korean"]),
    ("🎉", &["emoji"]),
    ("done 🎉 and", &["emoji"]),
    ("👩‍💻", &["emoji"]),
    ("GRÖSSE", &[]),
    ("GRÖßE", &["umlaut"]),
    ("ändern ÜBER", &["umlaut"]),
    ("αθηνα", &["greek"]),
    ("οδόσ", &["greek"]),
    ("ΟΔΌΣ", &["greek"]),
    ("ПРИВЕТ мир", &["cyrillic"]),
    ("hello world", &["apart", "quotes"]),
    ("\"hello world\"", &["quotes"]),
    ("\"hello world\" said", &["quotes"]),
    ("\"hello world\" then", &[]),
    ("\"hello  world\"", &[]),
    ("hello world then", &["apart"]),
    ("line second", &["lines"]),
    ("\"line\nsecond\"", &["lines"]),
    ("ab", &["short"]),
    ("c ab", &["short"]),
    ("ab hello", &[]),
    ("nowhere", &[]),
];

#[tokio::test(flavor = "multi_thread")]
async fn item_text_is_found_before_and_after_indexing() {
    let (_dir, store) = temp_store();
    let mut book = said(&store).await;
    wait_for_maintenance(&store).await;
    for (text, ids) in LOOKED_FOR {
        assert_eq!(found(&store, text).await, ids, "indexed: {text}");
    }
    // Without an index: queued items are scanned.
    let empty = if common::is_postgres() {
        "DELETE FROM search"
    } else {
        "INSERT INTO search(search) VALUES('delete-all')"
    };
    let wait = "INSERT INTO fresh SELECT key FROM item WHERE true ON CONFLICT DO NOTHING";
    common::raw_sql(&store, &format!("{wait}; {empty}"));
    for (text, ids) in LOOKED_FOR {
        assert_eq!(found(&store, text).await, ids, "not indexed: {text}");
    }
    // And it is indexed after the next append.
    book.say("last", "something else");
    book.keep(&store).await;
    wait_for_maintenance(&store).await;
    assert_eq!(found(&store, "foo_bar").await, ["code"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn updated_item_is_found_by_new_text_only() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "s").await;
    book.say("a", "the old wording");
    book.say("b", "to be removed");
    book.put(&text_item("c", 2, "half a sen", true));
    book.rest(&store).await;
    for indexed in [false, true] {
        if indexed {
            wait_for_maintenance(&store).await;
        }
        assert_eq!(found(&store, "wording").await, ["a"]);
        assert_eq!(found(&store, "half a sen").await, ["c"]);
    }
    book.put(&text_item("a", 0, "the new phrasing", false));
    book.change(&json!([{ "change": "remove", "id": "b" }]));
    book.change(&json!([{ "change": "append", "id": "c", "field": "content", "text": "tence" }]));
    book.rest(&store).await;
    for indexed in [false, true] {
        if indexed {
            wait_for_maintenance(&store).await;
        }
        assert_eq!(found(&store, "wording").await, [""; 0]);
        assert_eq!(found(&store, "phrasing").await, ["a"]);
        assert_eq!(found(&store, "to be removed").await, [""; 0]);
        assert_eq!(found(&store, "re").await, [""; 0], "also without the index");
        assert_eq!(found(&store, "sentence").await, ["c"]);
    }
    store.delete(&book.session.id).await.unwrap();
    assert_eq!(found(&store, "phrasing").await, [""; 0], "gone at once");
    wait_for_maintenance(&store).await;
    assert_eq!(found(&store, "phrasing").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_items_leave_index() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "s").await;
    book.say("a", "the first version");
    book.say("b", "stays");
    book.keep(&store).await;
    wait_for_maintenance(&store).await;
    // A new version that waits to be indexed, and then its removal.
    let mut next = {
        book.put(&text_item("a", 0, "the second version", false));
        book.next(false)
    };
    next.items.push(narrows_store::ItemWrite::Remove { id: "a".to_owned() });
    common::append(&store, next).await.unwrap();
    wait_for_maintenance(&store).await;
    assert_eq!(common::raw_sql(&store, "SELECT count(*) FROM item"), ["1"]);
    assert_eq!(common::raw_sql(&store, "SELECT count(*) FROM search"), ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hit_contains_field_and_snippet() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::of(session(&store, "order-7", &[]).await);
    book.head(&json!({ "title": "About needles" }));
    let long = format!("{} Needle in the {}", "hay ".repeat(50), "hay ".repeat(50));
    let mut item = text_item("a", 0, &long, false);
    item["timestamp"] = json!("2026-11-15T19:46:18.651Z");
    book.put(&item);
    book.put(&json!({
        "type": "notice", "id": "needle-id", "order": 1, "timestamp": null,
        "kind": "needle-kind", "text": "a needle and a thread",
    }));
    book.keep(&store).await;
    wait_for_maintenance(&store).await;

    let found = hits(&store, query("needle THREAD")).await;
    let [hit] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((hit.session_id.as_str(), hit.item_id.as_str()), (&*book.session.id, "needle-id"));
    assert_eq!(
        (hit.label.as_deref(), hit.title.as_deref()),
        (Some("order-7"), Some("About needles"))
    );
    assert_eq!((hit.r#type.as_str(), hit.order, &hit.timestamp), ("notice", 1, &None));
    assert_eq!(hit.field, "text");
    let marked = |hit: &Hit| hit.parts.iter().map(|p| (p.text.clone(), p.hit)).collect::<Vec<_>>();
    let part = |text: &str, hit| (text.to_owned(), hit);
    assert_eq!(
        marked(hit),
        [part("a ", false), part("needle", true), part(" and a ", false), part("thread", true)]
    );

    let found = hits(&store, query("needle hay")).await;
    let [hit] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((hit.field.as_str(), hit.order), ("content", 0));
    assert_eq!(hit.timestamp.as_deref(), Some("2026-11-15T19:46:18.651Z"));
    let shown: String = hit.parts.iter().map(|p| p.text.as_str()).collect();
    assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
    assert!(shown.contains("Needle") && shown.chars().count() < 140, "{shown}");
    assert!(long.contains(shown.trim_matches('…')));
    assert!(hit.parts.contains(&narrows_store::Part { text: "Needle".to_owned(), hit: true }));
    for parts in hit.parts.windows(2) {
        assert!(parts[0].hit != parts[1].hit || parts[0].text == "…");
    }
    // Identifiers are not searched.
    assert!(hits(&store, query("needle-id")).await.is_empty());
    assert!(hits(&store, query("needle-kind")).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn search_pages_return_each_hit_once_newest_first() {
    let (_dir, store) = temp_store();
    let mut all = BTreeSet::new();
    for s in 0..5 {
        let mut book = TestSession::new(&store, &format!("s{s}")).await;
        for n in 0..9 {
            // Some do not match, and some contain only the trigrams.
            let text = ["a needle", "hay", "needl ne edle eedl"][n % 3];
            book.say(&format!("s{s}-{n}"), text);
            if n % 3 == 0 {
                all.insert(format!("s{s}-{n}"));
            }
        }
        book.keep(&store).await;
    }
    wait_for_maintenance(&store).await;
    for text in ["needle", "a"] {
        for limit in [1, 2, 4, 100] {
            let (mut seen, mut next) = (Vec::new(), query(text));
            next.limit = limit;
            loop {
                let page = store.search(next.clone()).await.unwrap();
                assert!(page.hits.len() <= limit);
                seen.extend(page.hits.into_iter().map(|hit| hit.item_id));
                let Some(after) = page.next else { break };
                next.after = Some(after);
            }
            let wanted: Vec<&String> = all.iter().collect();
            let mut sorted: Vec<&String> =
                seen.iter().filter(|id| text != "a" || all.contains(*id)).collect();
            assert!(sorted.is_sorted_by(|a, b| a > b), "{sorted:?}");
            sorted.reverse();
            assert_eq!(sorted, wanted, "{text} by {limit}");
            assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn search_respects_visibility() {
    let (_dir, store) = temp_store();
    let mut sessions = Vec::new();
    for (label, tags) in [("one", &["red"][..]), ("two", &["blue"]), ("three", &[])] {
        let mut book = TestSession::of(session(&store, label, tags).await);
        book.say(label, "the secret");
        book.keep(&store).await;
        sessions.push(book.session);
    }
    wait_for_maintenance(&store).await;
    let sees = async |sight: Sight, only: Option<i64>| {
        let asked = Query { sight, session: only, ..query("secret") };
        let mut ids: Vec<String> =
            hits(&store, asked).await.into_iter().map(|hit| hit.item_id).collect();
        ids.sort();
        ids
    };
    let by = |sessions: &[&str], tags: &[&str]| Sight {
        sessions: Some(sessions.iter().map(|s| (*s).to_owned()).collect()),
        tags: Some(tags.iter().map(|t| (*t).to_owned()).collect()),
    };
    assert_eq!(sees(Sight::default(), None).await, ["one", "three", "two"]);
    assert_eq!(sees(Sight::default(), Some(sessions[1].key)).await, ["two"]);
    assert_eq!(sees(by(&[&sessions[2].id], &[]), None).await, ["three"]);
    assert_eq!(sees(by(&[], &["red"]), None).await, ["one"]);
    assert_eq!(sees(by(&[&sessions[2].id], &["red"]), None).await, ["one", "three"]);
    assert_eq!(sees(by(&[], &[]), None).await, [""; 0]);
    assert_eq!(sees(by(&[], &["red"]), Some(sessions[1].key)).await, [""; 0]);
    assert_eq!(sees(Sight::default(), Some(999)).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_queries_give_clear_errors() {
    let (_dir, store) = temp_store();
    said(&store).await;
    wait_for_maintenance(&store).await;
    let many = vec!["abc"; 17].join(" ");
    let long = "x".repeat(257);
    for (text, word) in [
        ("", "nothing"),
        (" \t", "nothing"),
        ("\"\" \" \"", "nothing"),
        (&many, "16"),
        (&long, "256"),
    ] {
        match store.search(query(text)).await {
            Err(Error::Invalid(told)) => assert!(told.contains(word), "{told}"),
            other => panic!("{text:?}: {other:?}"),
        }
    }
    // The maximum allowed.
    let most: Vec<String> = (0..16).map(|n| format!("{n:x}é").repeat(128)).collect();
    assert!(hits(&store, query(&most.join(" "))).await.is_empty());
    let wrong = Query { after: Some("x".to_owned()), ..query("main") };
    assert!(matches!(store.search(wrong).await, Err(Error::Invalid(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn search_treats_special_characters_literally() {
    let (_dir, store) = temp_store();
    let mut book = said(&store).await;
    book.say("nul", "before\u{0}after the end");
    book.keep(&store).await;
    for indexed in [false, true] {
        if indexed {
            wait_for_maintenance(&store).await;
        }
        for (text, ids) in [
            ("it's", &["quotes"][..]),
            ("'", &["quotes"]),
            ("a*b", &["quotes"]),
            ("mai*", &[]),
            ("100%", &["quotes"]),
            ("fo%ar", &[]),
            ("foo_bar", &["code"]),
            ("(NEAR)", &["quotes"]),
            ("NEAR(hello world)", &[]),
            ("hello AND world", &["apart", "quotes"]),
            ("hello OR main", &[]),
            ("hello NOT said", &[]),
            ("x:y", &["quotes"]),
            ("text:hello", &[]),
            ("^z", &["quotes"]),
            ("^he", &[]),
            ("-hello", &[]),
            ("{main} + main", &[]),
            ("\\", &[]),
            ("'; DROP TABLE item; --", &[]),
            ("\"unclosed phrase", &[]),
            ("\"hello world", &["quotes"]),
            ("\u{0}", &["nul"]),
            ("fore\u{0}aft", &["nul"]),
            ("the end", &["nul"]),
            ("hello\u{0}", &[]),
        ] {
            assert_eq!(found(&store, text).await, ids, "{text:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_added_during_indexing_are_indexed() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "s").await;
    // On PostgreSQL it may take a second until a node looks for items to index.
    for _ in 0..common::cases(40, 3) {
        // Each comes right after the one before, at another moment of its indexing.
        for _ in 0..5 {
            let n = book.seq;
            book.say(&format!("i{n}"), "said");
            book.keep(&store).await;
        }
        wait_for_maintenance(&store).await;
    }
}
