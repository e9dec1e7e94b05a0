//! The context of a policy in Python: `schedsim`'s context, during a callback.
//!
//! `unsafe`: a callback gets the simulator's own context by reference, but Python keeps objects as
//! long as it likes. A copy for each callback would cost more than the callback. So the object
//! holds a pointer that is set only while the callback runs, and is used only on the thread of the
//! simulation (`unsendable`).

use crate::error::named;
use pyo3::prelude::*;
use schedsim::policy::{Context as Model, TaskView};
use schedsim::{CpuId, TaskId};
use std::cell::Cell;
use std::ptr::NonNull;

/// The time, the machine, the running tasks, and random numbers. Valid only inside a callback.
#[pyclass(unsendable, module = "schedlab")]
pub struct Context {
    model: Cell<Option<NonNull<Model>>>,
    tasks: Cell<u32>,
}

impl Context {
    /// A context that is not valid yet.
    pub fn new() -> Context {
        Context { model: Cell::new(None), tasks: Cell::new(0) }
    }

    /// Makes the context valid for `model` while `callback` runs; there are `tasks` tasks.
    pub fn lend<T>(&self, model: &mut Model, tasks: u32, callback: impl FnOnce() -> T) -> T {
        self.tasks.set(tasks);
        self.model.set(Some(NonNull::from(model)));
        let done = callback();
        self.model.set(None);
        done
    }

    fn with<T>(&self, py: Python<'_>, ask: impl FnOnce(&mut Model) -> T) -> PyResult<T> {
        let mut model = self.model.get().ok_or_else(|| {
            named(py, "UsageError", "the context is valid only inside a callback: keep no copy")
        })?;
        // SAFETY: `lend` holds the only reference as long as the pointer is set, and waits for the
        // callback. `ask` does not call Python, so there is one reference at a time.
        Ok(ask(unsafe { model.as_mut() }))
    }

    fn of_task<T>(
        &self,
        py: Python<'_>,
        task: u32,
        ask: impl FnOnce(&TaskView) -> T,
    ) -> PyResult<T> {
        self.expect_task(py, task)?;
        self.with(py, |model| ask(model.task(TaskId(task))))
    }

    fn expect_task(&self, py: Python<'_>, task: u32) -> PyResult<()> {
        let tasks = self.tasks.get();
        if task < tasks {
            Ok(())
        } else {
            Err(named(py, "UsageError", &format!("there is no task {task}: there are {tasks}")))
        }
    }

    fn expect_cpu(&self, py: Python<'_>, cpu: u16) -> PyResult<CpuId> {
        let cpus = self.cpus(py)?;
        let wrong = || named(py, "UsageError", &format!("there is no CPU {cpu}: there are {cpus}"));
        if cpu < cpus { Ok(CpuId(cpu)) } else { Err(wrong()) }
    }
}

#[pymethods]
impl Context {
    /// The time in nanoseconds.
    #[getter]
    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |model| model.now().0)
    }

    /// The number of CPUs.
    #[getter]
    fn cpus(&self, py: Python<'_>) -> PyResult<u16> {
        self.with(py, |model| model.machine().cpus)
    }

    /// The CPUs that are idle and have not been kicked.
    #[getter]
    fn idle(&self, py: Python<'_>) -> PyResult<Vec<u16>> {
        self.with(py, |model| model.idle().iter().map(|cpu| cpu.0).collect())
    }

    /// Whether `cpu` is idle and has not been kicked.
    fn is_idle(&self, py: Python<'_>, cpu: u16) -> PyResult<bool> {
        let cpu = self.expect_cpu(py, cpu)?;
        self.with(py, |model| model.idle().contains(cpu))
    }

    /// The task on `cpu`, or None.
    fn current(&self, py: Python<'_>, cpu: u16) -> PyResult<Option<u32>> {
        let cpu = self.expect_cpu(py, cpu)?;
        self.with(py, |model| model.current(cpu).map(|task| task.0))
    }

    /// The task's last CPU if it is idle, else the lowest idle CPU on which it may run, or None.
    fn idle_cpu_for(&self, py: Python<'_>, task: u32) -> PyResult<Option<u16>> {
        self.expect_task(py, task)?;
        self.with(py, |model| model.idle_cpu_for(TaskId(task)).map(|cpu| cpu.0))
    }

    /// Whether the task may run on `cpu`.
    fn allowed(&self, py: Python<'_>, task: u32, cpu: u16) -> PyResult<bool> {
        self.expect_task(py, task)?;
        let cpu = self.expect_cpu(py, cpu)?;
        self.with(py, |model| model.allowed(TaskId(task), cpu))
    }

    /// The CPU on which the task last ran or waited.
    fn last_cpu(&self, py: Python<'_>, task: u32) -> PyResult<u16> {
        self.of_task(py, task, |task| task.cpu.0)
    }

    /// Linux's kernel priority of the task: 0 to 99 real-time, 0 the most important; 100 to 139 for
    /// nice -20 to 19.
    fn prio(&self, py: Python<'_>, task: u32) -> PyResult<u8> {
        self.of_task(py, task, |task| task.prio)
    }

    /// A random number of this run, from 0 to `bound` - 1.
    fn random_below(&self, py: Python<'_>, bound: u64) -> PyResult<u64> {
        if bound == 0 {
            return Err(named(py, "UsageError", "there is no number below 0"));
        }
        self.with(py, |model| model.random().below(bound))
    }
}
