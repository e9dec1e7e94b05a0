//! Maps pids to tasks during a recording.

use schedsim::TaskId;
use schedsim::trace::TaskInfo;

use super::record::{NamedTask, count};

/// The tasks seen so far. Pids are limited to the largest [`Pid`](schedsim::admission::Pid), so a
/// plain table is enough.
#[derive(Default)]
pub(super) struct Tasks {
    /// By pid: its current task, or `NONE`.
    by_pid: Vec<TaskId>,
    tasks: Vec<Task>,
    /// Whether the recording contains the creation of tasks.
    knows_births: bool,
    /// The number of tasks that reused a pid.
    pub pids_reused: u64,
}

struct Task {
    comm: Comm,
    pid: u32,
    tgid: u32,
    prio: u8,
    /// Its priority changed after it had run.
    reprioritised: bool,
    life: Life,
}

/// The history of a task. It decides whether the next use of its pid is the same task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Only mentioned, or just forked.
    Mentioned,
    /// It ran, or was woken for the first time.
    Lived,
    /// Its last switch was recorded.
    Ended,
}

/// A task's name as the kernel keeps it: at most 15 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Comm {
    bytes: [u8; 15],
    len: u8,
}

impl Comm {
    #[inline]
    fn new(name: &[u8]) -> Self {
        let len = name.len().min(15);
        let mut bytes = [0; 15];
        bytes[..len].copy_from_slice(&name[..len]);
        Comm { bytes, len: len.try_into().unwrap_or_default() }
    }
}

impl Tasks {
    /// The task of this pid; a new pid creates one. The idle task, pid 0, is `NONE`.
    ///
    /// A task may appear again after what looked like its last switch, if it slept while exiting.
    /// Only in a recording without creations this means that another task reuses the pid.
    #[inline]
    pub fn id(&mut self, named: &NamedTask<'_>) -> TaskId {
        if named.pid == 0 {
            return TaskId::NONE;
        }
        match self.by_pid.get(named.pid as usize) {
            Some(&id) if id != TaskId::NONE => {
                let task = &mut self.tasks[id.index()];
                if task.life == Life::Ended && !self.knows_births {
                    return self.create(named);
                }
                task.comm = Comm::new(named.comm);
                let prio = clamp(named.prio);
                task.reprioritised |= task.prio != prio && task.life != Life::Mentioned;
                task.prio = prio;
                id
            }
            _ => self.create(named),
        }
    }

    /// The task of this pid, if it was seen.
    #[inline]
    pub fn known(&self, pid: u32) -> Option<TaskId> {
        self.by_pid.get(pid as usize).copied().filter(|task| *task != TaskId::NONE)
    }

    /// The task of this pid; a new one has no name.
    pub fn id_of_pid(&mut self, pid: u32) -> TaskId {
        match self.by_pid.get(pid as usize) {
            _ if pid == 0 => TaskId::NONE,
            Some(&id) if id != TaskId::NONE => id,
            _ => self.create(&NamedTask { comm: b"", pid, prio: 120 }),
        }
    }

    /// A fork created `child`: a new task, even if its pid was used before. It starts with its
    /// parent's priority.
    pub fn fork(&mut self, parent: TaskId, child: u32, comm: &[u8]) -> TaskId {
        self.knows_births = true;
        let prio = if parent == TaskId::NONE { 120 } else { self.tasks[parent.index()].prio };
        self.create(&NamedTask { comm, pid: child, prio: i32::from(prio) })
    }

    /// A task was woken for the first time. If the pid's task ran before, its end was not recorded
    /// and this is a new task.
    pub fn first_wakeup(&mut self, named: &NamedTask<'_>) -> TaskId {
        self.knows_births = true;
        let mut id = self.id(named);
        if id != TaskId::NONE {
            if self.tasks[id.index()].life != Life::Mentioned {
                id = self.create(named);
            }
            self.tasks[id.index()].life = Life::Lived;
        }
        id
    }

    /// A task was switched in.
    #[inline]
    pub fn switched_in(&mut self, named: &NamedTask<'_>) -> TaskId {
        let id = self.id(named);
        if let Some(task) = self.tasks.get_mut(id.index()) {
            task.life = Life::Lived;
        }
        id
    }

    /// A task was switched out, finally or not.
    #[inline]
    pub fn switched_out(&mut self, id: TaskId, dead: bool) {
        if let Some(task) = self.tasks.get_mut(id.index()) {
            task.life = if dead { Life::Ended } else { Life::Lived };
        }
    }

    /// A task called exec. If it is a thread, it takes the leader's pid, and the leader ends under
    /// the thread's pid.
    pub fn exec(&mut self, pid: u32, old_pid: u32) -> TaskId {
        let id = self.id_of_pid(old_pid);
        if pid != old_pid && pid != 0 && id != TaskId::NONE {
            let leader = self.by_pid.get(pid as usize).copied().unwrap_or(TaskId::NONE);
            self.bind(pid, id);
            self.bind(old_pid, leader);
            let task = &mut self.tasks[id.index()];
            (task.pid, task.tgid) = (pid, pid);
        }
        id
    }

    /// Records the process of a task.
    #[inline]
    pub fn set_tgid(&mut self, id: TaskId, tgid: u32) {
        if let Some(task) = self.tasks.get_mut(id.index()) {
            task.tgid = tgid;
        }
    }

    /// By task: whether its priority changed after it had run.
    pub fn reprioritised(&self) -> Vec<bool> {
        self.tasks.iter().map(|task| task.reprioritised).collect()
    }

    /// The information on all tasks.
    pub fn into_infos(self) -> Vec<TaskInfo> {
        let info = |task: &Task| TaskInfo {
            name: String::from_utf8_lossy(&task.comm.bytes[..usize::from(task.comm.len)])
                .into_owned(),
            pid: task.pid,
            tgid: task.tgid,
            prio: task.prio,
        };
        self.tasks.iter().map(info).collect()
    }

    #[cold]
    fn create(&mut self, named: &NamedTask<'_>) -> TaskId {
        let id = TaskId(self.tasks.len().try_into().unwrap_or(u32::MAX));
        self.tasks.push(Task {
            comm: Comm::new(named.comm),
            pid: named.pid,
            tgid: 0,
            prio: clamp(named.prio),
            reprioritised: false,
            life: Life::Mentioned,
        });
        if self.bind(named.pid, id) != TaskId::NONE {
            count(&mut self.pids_reused);
        }
        id
    }

    /// Maps `pid` to `id` and returns the previous task.
    fn bind(&mut self, pid: u32, id: TaskId) -> TaskId {
        let index = pid as usize;
        if index >= self.by_pid.len() {
            self.by_pid.resize(index.saturating_add(1), TaskId::NONE);
        }
        std::mem::replace(&mut self.by_pid[index], id)
    }
}

/// Deadline tasks have priority -1, which becomes the most important priority.
#[inline]
fn clamp(prio: i32) -> u8 {
    prio.clamp(0, 139).try_into().unwrap_or_default()
}
