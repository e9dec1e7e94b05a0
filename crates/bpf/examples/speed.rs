//! How fast the machine is: `speed FILE.bpf.o PROGRAM [RUNS]` runs a program with zeros.

use bpf::{Fault, Function, FunctionId, Kernel, KernelVariable, Machine, Object, Outside, Setting};
use std::sync::Arc;
use std::time::Instant;

/// A kernel that has everything, and whose functions give 0.
struct Zero;

impl Kernel for Zero {
    fn has_function(&self, _: &Function) -> bool {
        true
    }

    fn has_helper(&self, _: u32) -> bool {
        true
    }

    fn setting(&self, _: &str) -> Option<Setting> {
        Some(Setting::Number(0))
    }

    fn variable(&self, _: &str) -> Option<KernelVariable> {
        None
    }
}

impl Outside for Zero {
    fn function(&mut self, _: &mut Machine, _: FunctionId, _: [u64; 5]) -> Result<u64, Fault> {
        Ok(0)
    }

    fn helper(&mut self, _: &mut Machine, _: u32, _: [u64; 5]) -> Result<u64, Fault> {
        Ok(0)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, name, ..] = &arguments[..] else {
        return Err("speed FILE.bpf.o PROGRAM [RUNS]".into());
    };
    let object = Arc::new(Object::read(&std::fs::read(path)?)?);
    let program = object.program(name).ok_or("there is no such program")?;
    let runs: u64 = arguments.get(2).map_or(Ok(1_000_000), |runs| runs.parse())?;
    let entries = vec![program];
    let settings = bpf::Settings { cpus: 4, entries, ..bpf::Settings::default() };
    let mut machine = Machine::new(Arc::clone(&object), &settings, &Zero)?;
    let memory = machine.allocate("an argument", 1 << 16)?;
    let start = Instant::now();
    for _ in 0..runs {
        machine.run(&mut Zero, program, &[memory.0; 6])?;
    }
    let took = start.elapsed().as_secs_f64();
    let executed = machine.executed();
    println!(
        "{runs} runs of {} instructions: {:.2} M runs a second, {:.2} ns an instruction",
        executed / runs,
        runs as f64 / took / 1e6,
        took * 1e9 / executed as f64
    );
    Ok(())
}
