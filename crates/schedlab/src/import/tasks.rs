//! Which task a pid means at each moment of a recording.

use schedsim::TaskId;
use schedsim::trace::TaskInfo;

use super::record::{Who, count};

/// The tasks seen so far. Pids are admitted up to [`Pid`](schedsim::admission::Pid)'s most, so a plain table finds them.
#[derive(Default)]
pub(super) struct Tasks {
    /// By pid: its present task, or `NONE`.
    by_pid: Vec<TaskId>,
    tasks: Vec<Task>,
    /// Whether the recording tells of new tasks.
    knows_births: bool,
    /// Tasks that took over the pid of another.
    pub pids_reused: u64,
}

struct Task {
    comm: Comm,
    pid: u32,
    tgid: u32,
    prio: u8,
    life: Life,
}

/// What was seen of a task; decides whether the next mention of its pid is still the same task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Only mentioned, or just forked.
    Mentioned,
    /// Ran, or was woken for the first time.
    Lived,
    /// Its last switch was seen.
    Ended,
}

/// A task's name as the kernel keeps it: up to 15 bytes.
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
    /// The task of this pid, which is created if it is new. The idle task, pid 0, is `NONE`.
    ///
    /// A task may be seen again after what looked like its last switch, when it slept on its way out. Only in a recording that does not
    /// tell of new tasks this means that the pid was given to another.
    #[inline]
    pub fn id(&mut self, who: &Who<'_>) -> TaskId {
        if who.pid == 0 {
            return TaskId::NONE;
        }
        match self.by_pid.get(who.pid as usize) {
            Some(&id) if id != TaskId::NONE => {
                let task = &mut self.tasks[id.index()];
                if task.life == Life::Ended && !self.knows_births {
                    return self.create(who);
                }
                task.comm = Comm::new(who.comm);
                task.prio = clamp(who.prio);
                id
            }
            _ => self.create(who),
        }
    }

    /// The task of this pid, or a nameless new one.
    pub fn id_of_pid(&mut self, pid: u32) -> TaskId {
        match self.by_pid.get(pid as usize) {
            _ if pid == 0 => TaskId::NONE,
            Some(&id) if id != TaskId::NONE => id,
            _ => self.create(&Who { comm: b"", pid, prio: 120 }),
        }
    }

    /// A fork made `child`: a new task, whatever its pid meant before. It begins with its parent's priority.
    pub fn fork(&mut self, parent: TaskId, child: u32, comm: &[u8]) -> TaskId {
        self.knows_births = true;
        let prio = if parent == TaskId::NONE { 120 } else { self.tasks[parent.index()].prio };
        self.create(&Who { comm, pid: child, prio: i32::from(prio) })
    }

    /// A task was woken for the first time. If this pid's task has lived already, its end was not recorded and this is another one.
    pub fn first_wakeup(&mut self, who: &Who<'_>) -> TaskId {
        self.knows_births = true;
        let mut id = self.id(who);
        if id != TaskId::NONE {
            if self.tasks[id.index()].life != Life::Mentioned {
                id = self.create(who);
            }
            self.tasks[id.index()].life = Life::Lived;
        }
        id
    }

    /// A task was switched in.
    #[inline]
    pub fn switched_in(&mut self, who: &Who<'_>) -> TaskId {
        let id = self.id(who);
        if let Some(task) = self.tasks.get_mut(id.index()) {
            task.life = Life::Lived;
        }
        id
    }

    /// A task was switched out, for good or not.
    #[inline]
    pub fn switched_out(&mut self, id: TaskId, dead: bool) {
        if let Some(task) = self.tasks.get_mut(id.index()) {
            task.life = if dead { Life::Ended } else { Life::Lived };
        }
    }

    /// A task replaced its program. When a thread does so it takes its leader's pid, and the leader ends under the thread's.
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

    /// Learns a task's process.
    #[inline]
    pub fn set_tgid(&mut self, id: TaskId, tgid: u32) {
        if let Some(task) = self.tasks.get_mut(id.index()) {
            task.tgid = tgid;
        }
    }

    /// Who each task is.
    pub fn into_infos(self) -> Vec<TaskInfo> {
        let info = |task: &Task| TaskInfo {
            name: String::from_utf8_lossy(&task.comm.bytes[..usize::from(task.comm.len)]).into_owned(),
            pid: task.pid,
            tgid: task.tgid,
            prio: task.prio,
        };
        self.tasks.iter().map(info).collect()
    }

    #[cold]
    fn create(&mut self, who: &Who<'_>) -> TaskId {
        let id = TaskId(self.tasks.len().try_into().unwrap_or(u32::MAX));
        self.tasks.push(Task { comm: Comm::new(who.comm), pid: who.pid, tgid: 0, prio: clamp(who.prio), life: Life::Mentioned });
        if self.bind(who.pid, id) != TaskId::NONE {
            count(&mut self.pids_reused);
        }
        id
    }

    /// Lets `pid` mean `id` and returns what it meant before.
    fn bind(&mut self, pid: u32, id: TaskId) -> TaskId {
        let index = pid as usize;
        if index >= self.by_pid.len() {
            self.by_pid.resize(index.saturating_add(1), TaskId::NONE);
        }
        std::mem::replace(&mut self.by_pid[index], id)
    }
}

/// Deadline tasks have priority -1; they count as the most important.
#[inline]
fn clamp(prio: i32) -> u8 {
    prio.clamp(0, 139).try_into().unwrap_or_default()
}
