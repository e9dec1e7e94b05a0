//! A policy written in Python, behind the same trait as all policies.
//!
//! The simulation runs on the caller's thread with the interpreter's lock, because nearly every
//! event needs it. Callbacks that the class does not define are not called.

use crate::context::Context;
use crate::error::named;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::intern;
use pyo3::prelude::*;

use program::no_such;
use pyo3::types::PyTuple;
use schedsim::admission::Tick;
use schedsim::engine::{self, Options, Outcome, Source};
use schedsim::policy::{
    Context as Model, Dispatch, Effect as ModelEffect, Enqueue, Needs, Policy, Promises, Reweight,
    Stop, Wake,
};
use schedsim::seat::{self, Breach, Rule};
use schedsim::trace::Trace;
use schedsim::{CpuId, Machine, Nanos, QueueCost, TaskId, Time};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use worlds::experiment::Candidate;

/// The effect that a policy returns; `schedlab.kick`, `kick_at` and `preempt` make one.
#[pyclass(frozen, eq, skip_from_py_object, module = "schedlab")]
#[derive(Clone, PartialEq)]
pub struct Effect(ModelEffect);

#[pymethods]
impl Effect {
    /// If this CPU is idle, let it dispatch.
    #[staticmethod]
    fn kick(cpu: u16) -> Effect {
        Effect(ModelEffect::Kick(CpuId(cpu)))
    }

    /// If this CPU is idle at that time (in nanoseconds), let it dispatch. Replaces an earlier one.
    #[staticmethod]
    fn kick_at(cpu: u16, time_ns: u64) -> Effect {
        Effect(ModelEffect::KickAt(CpuId(cpu), Time(time_ns)))
    }

    /// Preempts the task on this CPU and lets the CPU dispatch.
    #[staticmethod]
    fn preempt(cpu: u16) -> Effect {
        Effect(ModelEffect::Preempt(CpuId(cpu)))
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// Makes instances of a policy in Python, one for each run.
pub struct Caller {
    make: Py<PyAny>,
    name: String,
    needs: Needs,
    promises: Promises,
    migrates: bool,
    failure: Rc<RefCell<Option<PyErr>>>,
}

impl Caller {
    /// `make` is a class, or a function without arguments.
    pub fn new(make: &Bound<'_, PyAny>) -> PyResult<Caller> {
        let policy = make.call0()?;
        let py = make.py();
        let base = py.import("schedlab.policy")?.getattr("Policy")?;
        if !policy.is_instance(&base)? {
            let of = policy.get_type().name()?;
            return Err(named(
                py,
                "UsageError",
                &format!("a policy is an instance of a subclass of schedlab.Policy, not of {of}"),
            ));
        }
        for signature in REQUIRED {
            if Callback::of(&policy, signature)?.method.is_none() {
                let (class, (callback, parameters)) = (policy.get_type().name()?, signature);
                let message = format!(
                    "{class} does not define {}(self, cx, {})",
                    callback.name(),
                    parameters.join(", ")
                );
                return Err(named(py, "UsageError", &message));
            }
        }
        Ok(Caller {
            make: make.clone().unbind(),
            name: policy.getattr("name")?.extract()?,
            needs: Needs {
                tick: tick(&policy)?,
                alarm: policy.getattr("alarm")?.extract()?,
                ..Needs::default()
            },
            promises: promises(&policy)?,
            migrates: policy.getattr("migrates")?.extract()?,
            failure: Rc::default(),
        })
    }

    /// The exception that ended a run, if one did.
    pub fn raised(&self, _py: Python<'_>) -> Option<PyErr> {
        self.failure.borrow_mut().take()
    }
}

/// The tick period of a policy, if it needs ticks.
fn tick(policy: &Bound<'_, PyAny>) -> PyResult<Option<Nanos>> {
    let Some(given) = policy.getattr("tick_ns")?.extract::<Option<i128>>()? else {
        return Ok(None);
    };
    let tick = Tick::admit(given)
        .map_err(|wrong| named(policy.py(), "UsageError", &format!("tick_ns: {wrong}")))?;
    Ok(Some(Nanos(tick.get())))
}

/// The promises of a policy.
fn promises(policy: &Bound<'_, PyAny>) -> PyResult<Promises> {
    let mut promises = Promises::default();
    for promise in policy.getattr("promises")?.try_iter()? {
        let promise: String = promise?.extract()?;
        match promise.as_str() {
            "work_conserving" => promises.work_conserving = true,
            "locally_work_conserving" => promises.locally_work_conserving = true,
            "starvation_free" => promises.starvation_free = true,
            "inherits" => promises.inherits = true,
            wrong => {
                let names =
                    ["work_conserving", "locally_work_conserving", "starvation_free", "inherits"]
                        .map(String::from);
                let see = format!("It can be {}.", names.join(", "));
                return Err(named(
                    policy.py(),
                    "UsageError",
                    &no_such("promise", wrong, &names, &see),
                ));
            }
        }
    }
    Ok(promises)
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Candidate for Caller {
    fn cost(&self, _mips: f64) -> Option<QueueCost> {
        None
    }

    fn promises(&self, _cpus: u16) -> Promises {
        self.promises
    }

    fn migrates(&self, _cpus: u16) -> bool {
        self.migrates
    }

    fn run(
        &self,
        source: Source<'_>,
        machine: &Machine,
        options: Options,
        trace: Trace<'_>,
    ) -> Result<Outcome, engine::Error> {
        Python::attach(|py| match Instance::new(py, self) {
            Ok(policy) => engine::simulate(source, machine, policy, options, trace),
            Err(raised) => {
                let message = raised.to_string();
                self.failure.borrow_mut().get_or_insert(raised);
                let rule = Rule::GivesUp { message };
                Err(engine::Error::Policy(Breach {
                    callback: seat::Callback::Needs,
                    rule,
                    task: None,
                    cpu: None,
                    time: Time::ZERO,
                }))
            }
        })
    }
}

/// A method of a policy; if its class does not define it, nothing is called.
struct Callback<'py> {
    callback: seat::Callback,
    /// The parameters besides the context, for messages.
    parameters: &'static [&'static str],
    method: Option<Bound<'py, PyAny>>,
}

/// The name and the parameters of a callback.
type Signature = (seat::Callback, &'static [&'static str]);

const INIT_TASK: Signature = (seat::Callback::InitTask, &["task"]);
const EXIT_TASK: Signature = (seat::Callback::ExitTask, &["task"]);
const SELECT_CPU: Signature = (seat::Callback::SelectCpu, &["task", "new", "waker"]);
const ENQUEUE: Signature = (seat::Callback::Enqueue, &["task", "cpu", "why"]);
const DEQUEUE: Signature = (seat::Callback::Dequeue, &["task"]);
const SET_WEIGHT: Signature = (seat::Callback::SetWeight, &["task", "old", "inherited"]);
const DISPATCH: Signature = (seat::Callback::Dispatch, &["cpu"]);
const RUNNING: Signature = (seat::Callback::Running, &["cpu", "task"]);
const STOPPING: Signature = (seat::Callback::Stopping, &["cpu", "task", "why"]);
const UPDATE_IDLE: Signature = (seat::Callback::UpdateIdle, &["cpu", "idle"]);
const TICK: Signature = (seat::Callback::Tick, &["cpu", "task"]);

/// The required callbacks.
const REQUIRED: [Signature; 3] = [ENQUEUE, DEQUEUE, DISPATCH];

impl<'py> Callback<'py> {
    fn of(
        policy: &Bound<'py, PyAny>,
        (callback, parameters): Signature,
    ) -> PyResult<Callback<'py>> {
        let base = policy.py().import("schedlab.policy")?.getattr("Policy")?;
        let is_own =
            !policy.get_type().getattr(callback.name())?.is(&base.getattr(callback.name())?);
        let method = is_own.then(|| policy.getattr(callback.name())).transpose()?;
        Ok(Callback { callback, parameters, method })
    }

    /// The call, as in source code.
    fn source_text(&self, arguments: &Bound<'py, PyTuple>) -> String {
        let values = arguments.iter().skip(1).map(|value| value.to_string());
        let list: Vec<String> = self
            .parameters
            .iter()
            .zip(values)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        format!("{}({})", self.callback.name(), list.join(", "))
    }
}

/// The policy instance of one run.
pub struct Instance<'py> {
    context: Bound<'py, Context>,
    caller: &'py Caller,
    tasks: u32,
    init_task: Callback<'py>,
    exit_task: Callback<'py>,
    select_cpu: Callback<'py>,
    enqueue: Callback<'py>,
    dequeue: Callback<'py>,
    set_weight: Callback<'py>,
    dispatch: Callback<'py>,
    running: Callback<'py>,
    stopping: Callback<'py>,
    update_idle: Callback<'py>,
    tick: Callback<'py>,
}

impl<'py> Instance<'py> {
    /// A new one, for one run.
    pub fn new(py: Python<'py>, caller: &'py Caller) -> PyResult<Instance<'py>> {
        let policy = caller.make.bind(py).call0()?;
        let callback = |signature| Callback::of(&policy, signature);
        Ok(Instance {
            context: Bound::new(py, Context::new())?,
            caller,
            tasks: 0,
            init_task: callback(INIT_TASK)?,
            exit_task: callback(EXIT_TASK)?,
            select_cpu: callback(SELECT_CPU)?,
            enqueue: callback(ENQUEUE)?,
            dequeue: callback(DEQUEUE)?,
            set_weight: callback(SET_WEIGHT)?,
            dispatch: callback(DISPATCH)?,
            running: callback(RUNNING)?,
            stopping: callback(STOPPING)?,
            update_idle: callback(UPDATE_IDLE)?,
            tick: callback(TICK)?,
        })
    }

    /// Calls `callback` with the context and `arguments`; `None` if there is no such method. An
    /// exception, or an answer that `read` refuses, ends the run: no more callbacks are made.
    fn call<T, A>(
        &self,
        cx: &mut Model,
        callback: &Callback<'py>,
        arguments: A,
        read: impl FnOnce(Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T>
    where
        A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    {
        let method = callback.method.as_ref().filter(|_| self.caller.failure.borrow().is_none())?;
        let py = method.py();
        let arguments = match arguments.into_pyobject(py) {
            Ok(arguments) => arguments,
            Err(raised) => {
                return self.give_up(
                    cx,
                    callback.callback,
                    callback.callback.name().to_string(),
                    raised,
                );
            }
        };
        let answer = self.context.borrow().lend(cx, self.tasks, || method.call1(&arguments));
        match answer.and_then(read) {
            Ok(answer) => Some(answer),
            Err(raised) => {
                self.give_up(cx, callback.callback, callback.source_text(&arguments), raised)
            }
        }
    }

    /// Keeps the exception with its event; an interrupt stays an interrupt.
    fn give_up<T>(
        &self,
        cx: &mut Model,
        callback: seat::Callback,
        event: String,
        raised: PyErr,
    ) -> Option<T> {
        let py = self.context.py();
        cx.fail(callback, format!("{event}: {raised}"));
        let told = if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
            raised
        } else {
            let message =
                format!("{}: at {}, in {event}: {raised}", self.caller.name, Nanos(cx.now().0));
            let told = named(py, "PolicyError", &message);
            told.set_cause(py, Some(raised));
            told
        };
        self.caller.failure.borrow_mut().get_or_insert(told);
        None
    }

    fn wrong<T>(&self, message: String) -> PyResult<T> {
        Err(named(self.context.py(), "UsageError", &message))
    }

    /// An effect; None is no effect.
    fn effect(&self, answer: Bound<'py, PyAny>) -> PyResult<ModelEffect> {
        if answer.is_none() {
            return Ok(ModelEffect::Nothing);
        }
        let Ok(effect) = answer.cast::<Effect>() else {
            let of = answer.get_type().name()?;
            return self.wrong(format!(
                "an effect is None, or a value of schedlab.kick, kick_at or preempt, not of {of}"
            ));
        };
        Ok(effect.get().0)
    }

    /// A task and a slice, or None.
    fn chosen(&self, answer: Bound<'py, PyAny>) -> PyResult<Option<Dispatch>> {
        if answer.is_none() {
            return Ok(None);
        }
        let Ok((task, slice)) = answer.extract::<(u32, u64)>() else {
            return self.wrong(
                "dispatch gives None, or the task and for how many nanoseconds it may run"
                    .to_string(),
            );
        };
        Ok(Some(Dispatch { task: TaskId(task), slice: Nanos(slice) }))
    }
}

/// For callbacks without a result.
fn nothing(_: Bound<'_, PyAny>) -> PyResult<()> {
    Ok(())
}

impl Policy for Instance<'_> {
    fn needs(&self) -> Needs {
        self.caller.needs
    }

    fn promises(&self) -> Promises {
        self.caller.promises
    }

    fn migrates(&self) -> bool {
        self.caller.migrates
    }

    fn init_task(&mut self, cx: &mut Model, task: TaskId) {
        self.tasks = self.tasks.max(task.0 + 1);
        self.call(cx, &self.init_task, (self.context.clone(), task.0), nothing);
    }

    fn exit_task(&mut self, cx: &mut Model, task: TaskId) {
        self.call(cx, &self.exit_task, (self.context.clone(), task.0), nothing);
    }

    fn select_cpu(&mut self, cx: &mut Model, task: TaskId, wake: Wake) -> CpuId {
        let arguments = (self.context.clone(), task.0, wake.new, wake.waker.map(|cpu| cpu.0));
        let selected =
            self.call(cx, &self.select_cpu, arguments, |answer| Ok(CpuId(answer.extract()?)));
        selected
            .or_else(|| cx.idle_cpu_for(task))
            .or_else(|| cx.pinned(task))
            .unwrap_or_else(|| cx.task(task).cpu)
    }

    fn enqueue(&mut self, cx: &mut Model, task: TaskId, cpu: CpuId, why: Enqueue) -> ModelEffect {
        let why = match why {
            Enqueue::New => intern!(self.context.py(), "new"),
            Enqueue::Wakeup => intern!(self.context.py(), "wakeup"),
            Enqueue::SliceOver => intern!(self.context.py(), "slice_over"),
            Enqueue::Preempted => intern!(self.context.py(), "preempted"),
            Enqueue::Yielded => intern!(self.context.py(), "yielded"),
            Enqueue::PrioChanged => intern!(self.context.py(), "prio_changed"),
            Enqueue::Restored => intern!(self.context.py(), "restored"),
        };
        let arguments = (self.context.clone(), task.0, cpu.0, why);
        self.call(cx, &self.enqueue, arguments, |answer| self.effect(answer))
            .unwrap_or(ModelEffect::Nothing)
    }

    fn dequeue(&mut self, cx: &mut Model, task: TaskId) {
        self.call(cx, &self.dequeue, (self.context.clone(), task.0), nothing);
    }

    fn set_weight(&mut self, cx: &mut Model, task: TaskId, old: u8, why: Reweight) -> ModelEffect {
        let arguments = (self.context.clone(), task.0, old, why == Reweight::Inherited);
        self.call(cx, &self.set_weight, arguments, |answer| self.effect(answer))
            .unwrap_or(ModelEffect::Nothing)
    }

    fn dispatch(&mut self, cx: &mut Model, cpu: CpuId) -> Option<Dispatch> {
        self.call(cx, &self.dispatch, (self.context.clone(), cpu.0), |answer| self.chosen(answer))?
    }

    fn running(&mut self, cx: &mut Model, cpu: CpuId, task: TaskId) {
        self.call(cx, &self.running, (self.context.clone(), cpu.0, task.0), nothing);
    }

    fn stopping(&mut self, cx: &mut Model, cpu: CpuId, task: TaskId, why: Stop) {
        let why = match why {
            Stop::SliceOver => intern!(self.context.py(), "slice_over"),
            Stop::Preempted => intern!(self.context.py(), "preempted"),
            Stop::Yielded => intern!(self.context.py(), "yielded"),
            Stop::Blocked => intern!(self.context.py(), "blocked"),
            Stop::Exited => intern!(self.context.py(), "exited"),
            Stop::OtherClass => intern!(self.context.py(), "other_class"),
        };
        self.call(cx, &self.stopping, (self.context.clone(), cpu.0, task.0, why), nothing);
    }

    fn update_idle(&mut self, cx: &mut Model, cpu: CpuId, idle: bool) -> ModelEffect {
        let arguments = (self.context.clone(), cpu.0, idle);
        self.call(cx, &self.update_idle, arguments, |answer| self.effect(answer))
            .unwrap_or(ModelEffect::Nothing)
    }

    fn tick(&mut self, cx: &mut Model, cpu: CpuId, task: TaskId) -> ModelEffect {
        let arguments = (self.context.clone(), cpu.0, task.0);
        self.call(cx, &self.tick, arguments, |answer| self.effect(answer))
            .unwrap_or(ModelEffect::Nothing)
    }
}
