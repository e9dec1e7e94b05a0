//! Unique thread ids for tasks, and names that every parser can read.

use crate::trace_file::Task;
use schedsim::TaskId;
use std::collections::BTreeSet;

/// The largest thread id that Linux assigns.
const LARGEST: u32 = 1 << 22;

/// The tasks of a trace, each with its own thread id.
///
/// A recorded thread id is kept. If two tasks had the same id, the first keeps it. Later ones and
/// tasks without a recorded id get a free number.
#[derive(Clone, Debug)]
pub struct Names {
    tasks: Vec<Name>,
    idle: Name,
}

/// A task as other programs see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Name {
    /// Its thread id; 0 is the idle task.
    pub tid: u32,
    /// Its process id.
    pub tgid: u32,
    /// Its name: at most 15 bytes, without characters that confuse a parser.
    pub comm: String,
    /// Linux's kernel priority.
    pub prio: u8,
}

impl Names {
    /// Creates names for `tasks`, by index.
    pub fn new(tasks: &[Task]) -> Names {
        let mut used: BTreeSet<u32> =
            tasks.iter().flat_map(|task| [task.pid, task.tgid]).filter(|&pid| pid != 0).collect();
        let mut given = BTreeSet::new();
        let mut next = 1;
        let mut named = Vec::with_capacity(tasks.len());
        for task in tasks {
            let mut tid = task.pid;
            if tid == 0 || tid >= LARGEST || !given.insert(tid) {
                while used.contains(&next) {
                    next += 1;
                }
                tid = next;
                used.insert(tid);
            }
            let tgid = if task.tgid == 0 || tid != task.pid { tid } else { task.tgid };
            named.push(Name { tid, tgid, comm: comm(&task.name), prio: task.prio });
        }
        Names {
            tasks: named,
            idle: Name { tid: 0, tgid: 0, comm: "swapper".to_string(), prio: 120 },
        }
    }

    /// The name of `task`. [`TaskId::NONE`] and tasks that the trace does not introduce get the
    /// name of the idle task.
    #[inline]
    pub fn of(&self, task: TaskId) -> &Name {
        self.tasks.get(task.index()).unwrap_or(&self.idle)
    }

    /// All tasks, ordered by id.
    pub fn all(&self) -> &[Name] {
        &self.tasks
    }
}

/// The name as the kernel keeps it. Text that looks like a column or a field of `perf script`
/// becomes blanks.
fn comm(name: &str) -> String {
    let looks_like_columns = name.contains(['=', '[', ':']) && name.contains(' ');
    let mut comm = String::new();
    for character in name.chars() {
        let character = match character {
            _ if character.is_control() => '?',
            ' ' if looks_like_columns => '_',
            other => other,
        };
        if comm.len() + character.len_utf8() > 15 {
            break;
        }
        comm.push(character);
    }
    comm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tasks_share_a_thread_id() {
        let task = |pid, tgid| Task { name: "a".to_string(), pid, tgid, prio: 120 };
        let names = Names::new(&[task(7, 7), task(7, 7), task(0, 0), task(1, 7), task(LARGEST, 0)]);
        let ids: Vec<(u32, u32)> = names.all().iter().map(|name| (name.tid, name.tgid)).collect();
        assert_eq!(ids, [(7, 7), (2, 2), (3, 3), (1, 7), (4, 4)]);
        assert_eq!(names.of(TaskId::NONE).tid, 0);
    }

    #[test]
    fn a_name_keeps_only_what_a_parser_can_read() {
        assert_eq!(comm("kworker/0:1-eve"), "kworker/0:1-eve");
        assert_eq!(comm("Web Content"), "Web Content");
        assert_eq!(comm("x pid=1 prio=2"), "x_pid=1_prio=2");
        assert_eq!(comm("a\nb"), "a?b");
        assert_eq!(comm("ééééééééé"), "ééééééé");
    }
}
