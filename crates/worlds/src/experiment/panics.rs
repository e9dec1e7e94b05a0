//! Makes a panic of a policy a breach of contract: a typed error that names the callback.
//!
//! The engine is compiled for each policy and does not watch for panics. A run that panics is
//! repeated with each callback watched. The same seed gives the same run, so it panics in the same
//! callback. If none of them panics, the fault is the program's, and the panic continues.

use schedsim::engine::{self, Options, Outcome, Source};
use schedsim::policy::{
    AnyPolicy, Context, Dispatch, Effect, Enqueue, InKernel, Kept, Needs, Policy, PolicySpec,
    Promises, Reweight, Scan, Stop, VirtualTimes, Wake,
};
use schedsim::seat::{Breach, Callback, Rule};
use schedsim::trace::Trace;
use schedsim::workload::Affinity;
use schedsim::{CpuId, Machine, TaskId, Time};
use std::cell::{Cell, RefCell};
use std::panic::{
    AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind, set_hook, take_hook,
};
use std::sync::Once;

thread_local! {
    /// Whether a panic on this thread is caught and explained.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// Where the last of them was, and its message.
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Makes `run`. If it panics, runs `source` again under the same policy and reports the panic of
/// the policy as a breach.
///
/// # Errors
/// As [`engine::simulate`].
///
/// # Panics
/// If `run` does, and no callback of the policy's is the cause.
pub fn run_or_breach(
    policy: &PolicySpec,
    source: Source<'_>,
    machine: &Machine,
    options: Options,
    run: impl FnOnce() -> Result<Outcome, engine::Error>,
) -> Result<Outcome, engine::Error> {
    let panicked = match caught(run) {
        Ok(outcome) => return outcome,
        Err(panicked) => panicked,
    };
    let make = || {
        let made = policy.policy(machine.cpus);
        made.needs();
        made
    };
    let made = match caught(make) {
        Ok(made) => Watched { policy: made, has_panicked: false },
        Err(_) => {
            let rule = Rule::GivesUp { message: format!("it cannot be made: {}", last()) };
            return Err(engine::Error::Policy(Breach {
                callback: Callback::Needs,
                rule,
                task: None,
                cpu: None,
                time: Time::ZERO,
            }));
        }
    };
    match caught(|| engine::simulate(source, machine, made, options, Trace::new(Vec::new()))) {
        Ok(Err(engine::Error::Policy(breach))) => Err(engine::Error::Policy(breach)),
        _ => {
            eprintln!("{}", last());
            resume_unwind(panicked)
        }
    }
}

/// The result of `work`, or the panic that ended it, of which nothing is printed.
pub fn caught<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |info| if IS_CAUGHT.get() { note(info) } else { others(info) }));
    });
    let before = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    done
}

/// Where the last caught panic of this thread was, and its message.
pub fn last() -> String {
    LAST.with_borrow(String::clone)
}

fn note(info: &PanicHookInfo<'_>) {
    let place = info
        .location()
        .map_or(String::new(), |location| format!(" at {}:{}", location.file(), location.line()));
    let message = info.payload_as_str().unwrap_or("no message");
    LAST.with_borrow_mut(|last| *last = format!("it panicked{place}: {message}"));
}

/// A policy with every callback watched. After its first panic it is not called again.
struct Watched {
    policy: AnyPolicy,
    has_panicked: bool,
}

impl Watched {
    fn call<T>(
        &mut self,
        cx: &mut Context,
        callback: Callback,
        about: (Option<TaskId>, Option<CpuId>),
        harmless: T,
        call: impl FnOnce(&mut AnyPolicy, &mut Context) -> T,
    ) -> T {
        if self.has_panicked {
            return harmless;
        }
        let policy = &mut self.policy;
        let Ok(answer) = caught(|| call(policy, cx)) else {
            self.has_panicked = true;
            let task = about.0.map(|task| format!(" with task {}", task.0)).unwrap_or_default();
            let cpu = about.1.map(|cpu| format!(" on CPU {}", cpu.0)).unwrap_or_default();
            cx.fail(callback, format!("called{task}{cpu}, {}", last()));
            return harmless;
        };
        answer
    }
}

/// Callbacks that are watched: how each is called, its name, and the task and the CPU that it is
/// about. Also what it answers after a panic.
macro_rules! watched {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?, $callback:ident, $task:expr,
       $cpu:expr, $harmless:expr;)*) => {
        $(fn $name(&mut self, cx: &mut Context, $($argument: $type),*) $(-> $answer)? {
            self.call(cx, Callback::$callback, ($task, $cpu), $harmless, |policy, cx| {
                policy.$name(cx, $($argument),*)
            })
        })*
    };
}

// A callback that is not forwarded here would silently do nothing.
#[deny(clippy::missing_trait_methods)]
impl Policy for Watched {
    fn needs(&self) -> Needs {
        self.policy.needs()
    }

    fn promises(&self) -> Promises {
        self.policy.promises()
    }

    fn virtual_times(&self, task: TaskId, now: Time) -> Option<VirtualTimes> {
        if self.has_panicked { None } else { self.policy.virtual_times(task, now) }
    }

    fn keep(&mut self, task: TaskId, kept: Kept) {
        if !self.has_panicked {
            self.policy.keep(task, kept);
        }
    }

    fn correct(&mut self, task: TaskId, kernel: InKernel) -> Option<InKernel> {
        if self.has_panicked { None } else { self.policy.correct(task, kernel) }
    }

    fn timer(&mut self, cx: &mut Context) {
        self.call(cx, Callback::Timer, (None, None), (), |policy, cx| policy.timer(cx));
    }

    fn queue_length(&self, cpu: CpuId) -> u32 {
        if self.has_panicked { 0 } else { self.policy.queue_length(cpu) }
    }

    fn take_work(&mut self, cpu: CpuId) -> u64 {
        if self.has_panicked { 0 } else { self.policy.take_work(cpu) }
    }

    fn scan(&self, cpu: CpuId) -> Scan {
        self.policy.scan(cpu)
    }

    fn migrates(&self) -> bool {
        self.policy.migrates()
    }

    fn fetch(&self, task: TaskId) {
        if !self.has_panicked {
            self.policy.fetch(task);
        }
    }

    fn select_cpu(&mut self, cx: &mut Context, task: TaskId, wake: Wake) -> CpuId {
        let stays = cx.task(task).cpu;
        self.call(cx, Callback::SelectCpu, (Some(task), None), stays, |policy, cx| {
            policy.select_cpu(cx, task, wake)
        })
    }

    watched! {
        init_task(task: TaskId), InitTask, Some(task), None, ();
        exit_task(task: TaskId), ExitTask, Some(task), None, ();
        enqueue(task: TaskId, cpu: CpuId, why: Enqueue) -> Effect, Enqueue, Some(task), Some(cpu), Effect::Nothing;
        dequeue(task: TaskId), Dequeue, Some(task), None, ();
        set_weight(task: TaskId, old: u8, why: Reweight) -> Effect, SetWeight, Some(task), None, Effect::Nothing;
        set_cpumask(task: TaskId, old: Affinity) -> Effect, SetCpumask, Some(task), None, Effect::Nothing;
        disable(task: TaskId), Disable, Some(task), None, ();
        enable(task: TaskId), Enable, Some(task), None, ();
        cpu_offline(cpu: CpuId), CpuOffline, None, Some(cpu), ();
        cpu_online(cpu: CpuId), CpuOnline, None, Some(cpu), ();
        cpu_release(cpu: CpuId), CpuRelease, None, Some(cpu), ();
        cpu_acquire(cpu: CpuId), CpuAcquire, None, Some(cpu), ();
        dispatch(cpu: CpuId) -> Option<Dispatch>, Dispatch, None, Some(cpu), None;
        running(cpu: CpuId, task: TaskId), Running, Some(task), Some(cpu), ();
        stopping(cpu: CpuId, task: TaskId, why: Stop), Stopping, Some(task), Some(cpu), ();
        update_idle(cpu: CpuId, idle: bool) -> Effect, UpdateIdle, None, Some(cpu), Effect::Nothing;
        tick(cpu: CpuId, task: TaskId) -> Effect, Tick, Some(task), Some(cpu), Effect::Nothing;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Candidate;
    use super::*;
    use schedsim::Nanos;
    use schedsim::policy::{Catalog, Descriptor, Make, OptionSpec};
    use schedsim::swarm::Case;
    use schedsim::trace::{Event, Observer};
    use std::collections::VecDeque;

    /// First come, first served, until it reads beyond the end of a table, in the callback that its
    /// option names.
    #[derive(Clone)]
    struct Broken {
        waiting: VecDeque<TaskId>,
        calls: usize,
        at: u64,
    }

    impl Broken {
        fn step(&mut self, callback: u64) {
            self.calls += usize::from(callback == self.at);
            assert_eq!(
                [0; 2]
                    .get(self.calls)
                    .copied()
                    .unwrap_or_else(|| panic!("entry {} of 2", self.calls)),
                0
            );
        }
    }

    impl Policy for Broken {
        fn init_task(&mut self, _: &mut Context, _: TaskId) {}

        fn select_cpu(&mut self, cx: &mut Context, task: TaskId, _: Wake) -> CpuId {
            self.step(0);
            cx.task(task).cpu
        }

        fn enqueue(&mut self, _: &mut Context, task: TaskId, cpu: CpuId, _: Enqueue) -> Effect {
            self.step(1);
            self.waiting.push_back(task);
            Effect::Kick(cpu)
        }

        fn dequeue(&mut self, _: &mut Context, task: TaskId) {
            self.waiting.retain(|&waiting| waiting != task);
        }

        fn dispatch(&mut self, _: &mut Context, _: CpuId) -> Option<Dispatch> {
            self.step(2);
            self.waiting.pop_front().map(|task| Dispatch { task, slice: Nanos(1_000_000) })
        }

        fn stopping(&mut self, _: &mut Context, _: CpuId, _: TaskId, _: Stop) {
            self.step(3);
        }
    }

    static BROKEN: Descriptor = Descriptor {
        name: "broken",
        summary: "panics in one of its callbacks",
        source: "a test",
        options: &[OptionSpec::count("at", 0, 9, "", "the callback").by_default("8")],
        structure: None,
        scheduler: &Make(|given| {
            let at = given.count("at");
            assert!(at < 9, "nothing to break");
            Broken { waiting: VecDeque::new(), calls: 0, at }
        }),
    };

    fn run(policy: &str, observers: Vec<&mut dyn Observer>) -> Result<Outcome, engine::Error> {
        let case = Case::draw(3);
        let workload = case.scripts().expect("a case that runs");
        let spec = Catalog::built_in()
            .with(&[BROKEN])
            .expect("a name of its own")
            .parse(policy)
            .expect("a policy");
        Candidate::run(
            &spec,
            (&workload).into(),
            &Machine::ideal(1),
            Options { seed: 1, until: Time::NEVER },
            Trace::new(observers),
        )
    }

    #[test]
    fn a_panic_of_a_policy_is_a_breach_that_names_the_callback() {
        let callbacks =
            [Callback::SelectCpu, Callback::Enqueue, Callback::Dispatch, Callback::Stopping];
        for (at, callback) in callbacks.into_iter().enumerate() {
            let Err(engine::Error::Policy(breach)) = run(&format!("broken?at={at}"), Vec::new())
            else {
                panic!("{callback:?}: no breach");
            };
            assert_eq!(breach.callback, callback);
            let said = breach.to_string();
            assert!(
                said.contains("it panicked at")
                    && said.contains("panics.rs:")
                    && said.contains("entry 2 of 2"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_policy_that_cannot_be_made_is_a_breach() {
        let Err(engine::Error::Policy(breach)) = run("broken?at=9", Vec::new()) else {
            panic!("no breach")
        };
        assert!(breach.to_string().contains("it cannot be made: it panicked at"), "{breach}");
    }

    #[test]
    fn a_panic_outside_the_policy_continues() {
        struct Faulty;
        impl Observer for Faulty {
            fn events(&mut self, _: &[Event]) {
                panic!("an observer's");
            }
        }
        let went_on = caught(|| run("central:rr", vec![&mut Faulty])).expect_err("the panic");
        assert_eq!(went_on.downcast_ref::<&str>(), Some(&"an observer's"));
    }
}
