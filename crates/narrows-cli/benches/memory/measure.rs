//! What a process holds, and whether it grows.

pub(crate) const MB: usize = 1 << 20;

/// What a process held when so much had been done.
pub(crate) struct Row {
    done: usize,
    unit: &'static str,
    kib: usize,
}

impl Row {
    pub(crate) fn new(done: usize, unit: &'static str, kib: usize) -> Row {
        Row { done, unit, kib }
    }

    pub(crate) fn print(&self) {
        println!("  {:>9} {:<14} {:>5} MB", self.done, self.unit, self.kib >> 10);
    }
}

/// What a process holds while work goes on.
pub(crate) struct Growth {
    process: u32,
    rows: Vec<Row>,
}

impl Growth {
    pub(crate) fn of(process: u32) -> Growth {
        Growth { process, rows: Vec::new() }
    }

    pub(crate) fn look(&mut self, done: usize, unit: &'static str) {
        let row = Row::new(done, unit, now(self.process));
        row.print();
        self.rows.push(row);
    }

    /// Says by how much the last half of the work made it larger; true when that is little.
    pub(crate) fn end(&self, most: usize) -> bool {
        let half = self.rows.len() / 2;
        let (Some(from), Some(until)) = (self.rows.get(half.saturating_sub(1)), self.rows.last())
        else {
            return true;
        };
        let grown = until.kib.saturating_sub(from.kib) >> 10;
        let flat = grown <= most;
        let word = if flat { "flat" } else { "GROWS" };
        println!("  {word}: {grown} MB more over the last half (at most {most})\n");
        flat
    }
}

/// Resident memory now, in KiB.
pub(crate) fn now(process: u32) -> usize {
    field(process, "VmRSS:")
}

/// Peak resident memory, in KiB.
pub(crate) fn peak(process: u32) -> usize {
    field(process, "VmHWM:")
}

fn field(process: u32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}
