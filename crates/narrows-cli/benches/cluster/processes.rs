//! What processes use, as the kernel tells it.

use crate::nodes::env;
use std::path::Path;
use std::time::Instant;

/// Every process of the PostgreSQL: all of them stand in its data folder.
fn postgres() -> Vec<u32> {
    let data = env("NARROWS_TEST_PG_DATA");
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    let ours = all
        .filter(|p| std::fs::read_link(p.path().join("cwd")).is_ok_and(|c| c == Path::new(&data)));
    ours.filter_map(|p| p.file_name().to_str()?.parse().ok()).collect()
}

fn nats() -> u32 {
    let file = Path::new(&env("NARROWS_TEST_SERVICES")).join("nats.pid");
    let told = std::fs::read_to_string(file).expect("the pid of NATS");
    told.trim().parse().expect("a number")
}

/// Ticks that a process has used; with those of its children that have ended, if asked for.
fn ticks(pid: u32, children: bool) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may hold anything; what follows are numbers, from the third field on.
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let fields = rest.split(' ').skip(11).take(if children { 4 } else { 2 });
    fields.filter_map(|n| n.parse::<u64>().ok()).sum()
}

/// Bytes of memory that a process holds.
pub(crate) fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) * 1024
}

/// What was used up to a moment.
pub(crate) struct Used {
    at: Instant,
    pids: Vec<u32>,
    nodes: Vec<u64>,
    postgres: u64,
    nats: u64,
}

/// Percent of one core.
pub(crate) struct Share {
    pub(crate) nodes: Vec<f64>,
    pub(crate) postgres: f64,
    pub(crate) nats: f64,
}

impl Used {
    /// Of nodes by their processes, and of both servers.
    pub(crate) fn now(pids: &[u32]) -> Used {
        // Connections that were closed are counted with the process that started them.
        let first: u32 = env("NARROWS_TEST_PG_PID").parse().expect("a number");
        Used {
            at: Instant::now(),
            pids: pids.to_vec(),
            nodes: pids.iter().map(|pid| ticks(*pid, false)).collect(),
            postgres: postgres().into_iter().map(|pid| ticks(pid, pid == first)).sum(),
            nats: ticks(nats(), false),
        }
    }

    /// Seconds of a core that nodes and PostgreSQL have used since then.
    pub(crate) fn seconds(&self) -> (f64, f64) {
        let (took, share) = (self.at.elapsed().as_secs_f64(), self.since());
        (share.nodes.iter().sum::<f64>() / 100.0 * took, share.postgres / 100.0 * took)
    }

    /// What was used since then.
    pub(crate) fn since(&self) -> Share {
        let now = Used::now(&self.pids);
        let took = (now.at - self.at).as_secs_f64();
        let second = rustix::param::clock_ticks_per_second() as f64;
        let share = |from: u64, to: u64| to.saturating_sub(from) as f64 / second / took * 100.0;
        Share {
            nodes: self.nodes.iter().zip(&now.nodes).map(|(a, b)| share(*a, *b)).collect(),
            postgres: share(self.postgres, now.postgres),
            nats: share(self.nats, now.nats),
        }
    }
}
