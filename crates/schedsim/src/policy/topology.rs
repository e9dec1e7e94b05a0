//! The variants of the three topologies: the options that Curran & Stumm describe, and the points that their text leaves open.

use super::catalog::Choice;
use super::loads::Ties;

/// How a topology is set. Each reads what concerns it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Variants {
    /// `central`: whom an idle CPU may take that did not run there last.
    pub search: Search,
    /// `central`: whether a woken task goes on where it last ran if that CPU is idle.
    pub shortcut: bool,
    /// `take`: whether an idle CPU looks for work all the time.
    pub polling: bool,
    /// `take`: which task of the other CPU's queue.
    pub taken: Taken,
    /// `take`: which tasks are ready when CPUs are compared for a new one.
    pub ready: Ready,
    /// `initial`: what is compared.
    pub measure: Measure,
    /// `initial`: how many tasks a processor-intensive one counts for.
    pub heavy: u32,
    /// `initial`, `take`: whether worse levels count; `None` is as the order suggests.
    pub count: Option<Count>,
    /// `initial`, `take`: which of several equal CPUs.
    pub ties: Ties,
    /// `take`: whether near queues come before long ones.
    pub near: bool,
}

/// How far a CPU looks in the central queue for a task that last ran there (§4.2, §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Search {
    /// At so many tasks; 1 takes the head.
    First(usize),
    /// At all tasks of the best level that has any. With few `levels`, several priorities share one: the paper's groups.
    TopLevel,
}

/// Which task a raid takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Taken {
    /// The one that would run next.
    #[default]
    Head,
    /// The one that would run last.
    Tail,
}

/// Which tasks count as ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ready {
    /// Those that wait and the one that runs.
    #[default]
    Running,
    /// Those that wait.
    Waiting,
}

/// What makes a CPU loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Measure {
    /// How many tasks it has.
    #[default]
    Tasks,
    /// How much CPU time its tasks use.
    Utilisation,
}

/// Which tasks count when CPUs are compared for a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Count {
    /// All.
    #[default]
    All,
    /// Those of an equal or better level, as §5.3 has it for priorities.
    Level,
}

impl Default for Variants {
    fn default() -> Self {
        Variants {
            search: Search::First(1),
            shortcut: true,
            polling: true,
            taken: Taken::Head,
            ready: Ready::Running,
            measure: Measure::Tasks,
            heavy: 1,
            count: None,
            ties: Ties::Random,
            near: false,
        }
    }
}

/// What they are called.
pub const VARIANTS: [Choice; 10] = [
    Choice {
        name: "search",
        summary: "central: how many tasks a CPU looks at for one that last ran there, all, or top for all of the best level (default 1)",
    },
    Choice {
        name: "shortcut",
        summary: "central: yes or no: whether a woken task goes on where it last ran if that CPU is idle (default yes)",
    },
    Choice {
        name: "idle",
        summary: "take: an idle CPU looks for work all the time (polling, the default) or only when it becomes idle (once)",
    },
    Choice { name: "taken", summary: "take: which task an idle CPU takes from a queue: the head (default) or the tail" },
    Choice { name: "ready", summary: "take: whether the running task counts for a new one: running (yes, the default) or waiting (no)" },
    Choice {
        name: "load",
        summary: "initial: what is compared for a new task: how many tasks there are, or how much CPU time they use (tasks, the default, or utilisation)",
    },
    Choice { name: "heavy", summary: "initial: how many tasks a processor-intensive one counts for (default 1; in the paper 25)" },
    Choice {
        name: "count",
        summary: "initial, take: which tasks count for a new one: all, or those of an equal or better level (default level for priority, else all)",
    },
    Choice {
        name: "raid",
        summary: "take: where an idle CPU takes a task: from the longest queue (the default), or from the longest of the nearest CPUs where any waits (near)",
    },
    Choice { name: "ties", summary: "initial, take: which of several equal CPUs: random (the default) or lowest" },
];

impl Variants {
    /// Sets an option; `None` if there is no such option, an error that says what it takes if the value will not do.
    pub fn set(&mut self, option: &str, value: &str) -> Option<Result<(), String>> {
        let number = || value.parse().ok().filter(|&number: &usize| number > 0);
        let expect = |done: Option<()>, what: &str| done.ok_or_else(|| what.to_string());
        Some(match option {
            "search" => {
                let search = match value {
                    "all" => Some(Search::First(usize::MAX)),
                    "top" => Some(Search::TopLevel),
                    _ => number().map(Search::First),
                };
                expect(search.map(|search| self.search = search), "a number above zero, all, or top")
            }
            "shortcut" => expect(choose(value, [("yes", true), ("no", false)]).map(|shortcut| self.shortcut = shortcut), "yes or no"),
            "idle" => expect(choose(value, [("polling", true), ("once", false)]).map(|polling| self.polling = polling), "polling or once"),
            "taken" => {
                expect(choose(value, [("head", Taken::Head), ("tail", Taken::Tail)]).map(|taken| self.taken = taken), "head or tail")
            }
            "ready" => {
                let ready = choose(value, [("running", Ready::Running), ("waiting", Ready::Waiting)]);
                expect(ready.map(|ready| self.ready = ready), "running or waiting")
            }
            "load" => {
                let measure = choose(value, [("tasks", Measure::Tasks), ("utilisation", Measure::Utilisation)]);
                expect(measure.map(|measure| self.measure = measure), "tasks or utilisation")
            }
            "heavy" => {
                let heavy = number().and_then(|heavy| u32::try_from(heavy).ok()).filter(|heavy| (1..=1000).contains(heavy));
                expect(heavy.map(|heavy| self.heavy = heavy), "1 to 1000")
            }
            "count" => {
                let count = choose(value, [("all", Count::All), ("level", Count::Level)]);
                expect(count.map(|count| self.count = Some(count)), "all or level")
            }
            "raid" => expect(choose(value, [("longest", false), ("near", true)]).map(|near| self.near = near), "longest or near"),
            "ties" => {
                let ties = choose(value, [("random", Ties::Random), ("lowest", Ties::Lowest)]);
                expect(ties.map(|ties| self.ties = ties), "random or lowest")
            }
            _ => return None,
        })
    }
}

/// The choice that `value` names.
pub fn choose<T: Copy, const N: usize>(value: &str, choices: [(&str, T); N]) -> Option<T> {
    choices.iter().find(|(name, _)| *name == value).map(|&(_, choice)| choice)
}
