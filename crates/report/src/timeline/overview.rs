//! The down-sampled overview of a complete run.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use formats::export::Interval;
use schedsim::Time;
use std::collections::BTreeMap;

/// A grid of cells, a row for each CPU: the busy share of the cell, and the task with most of that
/// time.
pub struct Overview {
    cell: u64,
    per_cpu: usize,
    cells: Vec<Cell>,
    /// By CPU: the current cell, and the time of each task in it.
    open: Vec<(usize, BTreeMap<u32, u64>)>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    busy: u64,
    most: u64,
    task: u32,
}

impl Overview {
    /// An empty grid of cells of `cell` nanoseconds.
    pub fn new(cpus: u16, cell: u64, end: Time) -> Overview {
        let per_cpu = end.0.div_ceil(cell).max(1) as usize;
        Overview {
            cell,
            per_cpu,
            cells: vec![Cell::default(); per_cpu * usize::from(cpus)],
            open: vec![(0, BTreeMap::new()); usize::from(cpus)],
        }
    }

    /// Adds an interval; those of one CPU come in order.
    pub fn add(&mut self, interval: &Interval, task: u32) {
        if interval.cpu.index() >= self.open.len() {
            return;
        }
        let mut at = interval.start.0;
        while at < interval.end.0 {
            let index = (at / self.cell) as usize;
            let until = interval.end.0.min((index as u64 + 1) * self.cell);
            if self.open[interval.cpu.index()].0 != index {
                self.close(interval.cpu.index(), index);
            }
            *self.open[interval.cpu.index()].1.entry(task).or_default() += until - at;
            at = until;
        }
    }

    /// Ends the current cell of a CPU and starts another.
    fn close(&mut self, cpu: usize, next: usize) {
        let (index, times) = &mut self.open[cpu];
        let most = times.iter().max_by_key(|&(&task, &time)| (time, std::cmp::Reverse(task)));
        if let (Some((&task, &most)), Some(cell)) =
            (most, self.cells.get_mut(cpu * self.per_cpu + *index))
        {
            *cell = Cell { busy: times.values().sum(), most, task };
        }
        times.clear();
        *index = next;
    }

    /// Cell by cell, CPU by CPU: the busy share in 255ths. If it is not 0, the share of the leading
    /// task in 255ths, and its number. In base64.
    pub fn pack(mut self) -> String {
        (0..self.open.len()).for_each(|cpu| self.close(cpu, 0));
        let mut bytes = Vec::new();
        for cell in &self.cells {
            let busy = (cell.busy * 255).div_ceil(self.cell).min(255);
            varint(&mut bytes, busy);
            if busy > 0 {
                varint(&mut bytes, cell.most * 255 / cell.busy.max(1));
                varint(&mut bytes, u64::from(cell.task));
            }
        }
        BASE64_STANDARD.encode(bytes)
    }
}

/// Seven bits in each byte, the lowest first; the eighth bit says that more follow.
pub fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedsim::{CpuId, TaskId};

    #[test]
    fn an_overview_keeps_all_busy_time_and_the_leading_task() {
        let mut overview = Overview::new(1, 100, Time(200));
        [(0, 0, 60), (1, 60, 90), (0, 95, 150)]
            .iter()
            .for_each(|&(task, start, end)| overview.add(&interval(task, start, end), task));
        overview.close(0, 0);
        let cells: Vec<_> =
            overview.cells.iter().map(|cell| (cell.busy, cell.most, cell.task)).collect();
        assert_eq!(cells, [(95, 65, 0), (50, 50, 0)]);
    }

    fn interval(task: u32, start: u64, end: u64) -> Interval {
        Interval { cpu: CpuId(0), task: TaskId(task), start: Time(start), end: Time(end) }
    }
}
