//! Recorded sessions, cut at every packet.

use crate::bed::{Bed, CUTS, HOWS, Sender};
use crate::common::fixture;
use narrows::Format;

const CAPTURES: [(&str, Format); 9] = [
    ("acp/odd-notices-and-compactions", Format::Acp),
    ("acp/opencode-1.18-c-files", Format::Acp),
    ("acp/claude-acp-g-subagent", Format::Acp),
    ("acp/codex-acp-n-partial", Format::Acp),
    ("acp/gemini-acp-h-permission-reject", Format::Acp),
    ("claude-stream/2.1-n-partial", Format::ClaudeStream),
    ("claude-stream/2.0-n-partial", Format::ClaudeStream),
    ("claude-stream/2.1-f-todos", Format::ClaudeStream),
    ("claude-stream/2.1-u-bidi-permission", Format::ClaudeStream),
];

#[tokio::test(flavor = "multi_thread")]
async fn recorded_sessions_are_cut_everywhere() {
    let mut ways = HOWS.iter().flat_map(|how| CUTS.iter().map(|cut| (*how, *cut))).cycle();
    let mut bed = Bed::new();
    let mut refused = 0;
    for (name, format) in CAPTURES {
        let input = fixture(name);
        let packets: Vec<Vec<u8>> =
            input.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        let truth = bed.truth(&packets, format, "");
        for at in 1..packets.len() {
            for (how, cut) in ways.by_ref().take(3) {
                let mut sender = Sender::new(&bed, &packets, how, format, "").await;
                sender.before(&bed, at, false).await;
                bed.cut(cut).await;
                sender.after(&bed, at).await;
                let items = bed.items(&sender.session).await;
                assert_eq!(items, truth, "{name}: {how:?}, {cut:?} after {at}");
                refused += sender.refused;
            }
        }
    }
    assert!(refused > 0, "nothing was ever held back");
}
