//! Calls of the scheduler's programs, each traced if that is wanted.

use super::Compiled;
use crate::callbacks::{Callback, Op};
use crate::cost;
use crate::kernel::Kernel;
use crate::trace::Arguments;
use schedsim::policy::Context;

impl Compiled {
    /// Calls one of the scheduler's operations; 0 if it has none, or is at its end. A fault ends
    /// the scheduler.
    pub(super) fn call(&mut self, cx: &mut Context, op: Op, arguments: &[u64]) -> u64 {
        let Some(program) = self.loaded.program(op).filter(|_| self.core.exit.is_none()) else {
            return 0;
        };
        let callback = Callback::Op(op);
        let (functions, costs) = (self.loaded.functions(), self.loaded.costs());
        let mut kernel = Kernel { core: &mut self.core, cx, functions, costs, callback };
        self.machine.cpu = kernel.core.this.0.into();
        let machine = &mut self.machine;
        let before = machine.executed();
        let answer = match &mut self.tracer {
            None => machine.run(&mut kernel, program, arguments),
            Some(tracer) => {
                let arguments = Arguments::Operation(arguments);
                tracer.run(machine, kernel, callback, program, arguments)
            }
        };
        self.account_for_work(before);
        match answer {
            Ok(answer) => answer,
            Err(fault) => {
                self.core.error(format!("{}: {fault}", op.name()));
                0
            }
        }
    }

    /// Calls an operation that may fail, which ends the scheduler.
    pub(super) fn expect(&mut self, cx: &mut Context, op: Op, arguments: &[u64], about: &str) {
        let answer = self.call(cx, op, arguments) as i32;
        if answer < 0 && self.core.exit.is_none() {
            self.core.error(format!("ops.{}() failed ({answer}){about}", op.name()));
        }
    }

    /// Calls the function of a timer. A fault ends the scheduler.
    pub(super) fn ring(&mut self, cx: &mut Context, callback: u64, arguments: [u64; 5]) {
        let at = Callback::Timer;
        let (functions, costs) = (self.loaded.functions(), self.loaded.costs());
        let mut kernel = Kernel { core: &mut self.core, cx, functions, costs, callback: at };
        let machine = &mut self.machine;
        machine.cpu = kernel.core.this.0.into();
        let before = machine.executed();
        let called = match (&mut self.tracer, machine.program_at(callback)) {
            (Some(tracer), Some(program)) => {
                let with = Arguments::Timer { callback, arguments };
                tracer.run(machine, kernel, at, program, with)
            }
            _ => machine.call(&mut kernel, callback, arguments),
        };
        self.account_for_work(before);
        if let Err(fault) = called {
            self.core.error(format!("a timer: {fault}"));
        }
    }

    /// A callback is over: its work is its CPU's. `before` are the instructions of BPF that had been
    /// executed before it.
    fn account_for_work(&mut self, before: u64) {
        let executed = self.machine.executed() - before;
        let called = std::mem::take(&mut self.core.called);
        self.core.cpus[self.core.this.index()].work += cost::of_callback(executed, called);
    }

    /// Traces why the scheduler is at its end, if it is.
    pub(super) fn trace_end(&mut self, cx: &Context) {
        if let Some(tracer) = &mut self.tracer {
            tracer.end(&self.core, cx.now());
        }
    }
}
