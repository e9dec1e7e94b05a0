//! What the tests share: a compiler of C, and an outside that writes down what it is called for.
#![allow(dead_code)]

pub mod assemble;

use bpf::{
    Fault, Function, FunctionId, Kernel, KernelVariable, Machine, MapId, Object, Outside, Setting,
    Settings,
};
use std::process::Command;
use std::sync::Arc;

/// Compiles C to an object.
pub fn compile(source: &str, version: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("program.bpf.c"), folder.path().join("program.bpf.o"));
    std::fs::write(&from, source).unwrap();
    let output = Command::new("clang-19")
        .args(["-target", "bpf", "-g", "-O2", "-Wall", "-Wno-unused", &format!("-mcpu={version}")])
        .arg("-c")
        .arg(&from)
        .arg("-o")
        .arg(&to)
        .output()
        .unwrap_or_else(|error| panic!("clang-19 is needed: apt-get install clang-19 ({error})"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    std::fs::read(&to).unwrap()
}

/// What the programs of the tests find outside of the machine.
#[derive(Default)]
pub struct World {
    /// The functions that were called, with their arguments.
    pub calls: Vec<(String, [u64; 5])>,
    /// Records of ring buffers.
    pub records: Vec<Vec<u8>>,
    /// Lines that were printed.
    pub printed: Vec<String>,
}

impl Kernel for World {
    fn has_function(&self, function: &Function) -> bool {
        function.essential().starts_with("here_")
    }

    fn has_helper(&self, helper: u32) -> bool {
        helper == 5
    }

    fn setting(&self, name: &str) -> Option<Setting> {
        match name {
            "CONFIG_HZ" => Some(Setting::Number(250)),
            "CONFIG_NAME" => Some(Setting::Text("linux".to_string())),
            _ => None,
        }
    }

    fn variable(&self, name: &str) -> Option<KernelVariable> {
        match name {
            "here_value" => Some(KernelVariable::Bytes(77u32.to_le_bytes().to_vec())),
            "here_of_cpu" => Some(KernelVariable::PerCpu(vec![0; 8])),
            _ => None,
        }
    }
}

impl Outside for World {
    fn function(
        &mut self,
        machine: &mut Machine,
        function: FunctionId,
        arguments: [u64; 5],
    ) -> Result<u64, Fault> {
        let name = machine.object().functions()[function.0 as usize].name.clone();
        let result = match name.as_str() {
            "here_call" => machine.call(self, arguments[0], [arguments[1], 0, 0, 0, 0])?,
            "here_refuses" => return Err(Fault::new("is refused here")),
            _ => arguments[0] + 1,
        };
        self.calls.push((name, arguments));
        Ok(result)
    }

    fn helper(&mut self, _: &mut Machine, helper: u32, _: [u64; 5]) -> Result<u64, Fault> {
        assert_eq!(helper, 5);
        Ok(123_456)
    }

    fn record(&mut self, _: &mut Machine, _: MapId, bytes: &[u8]) {
        self.records.push(bytes.to_vec());
    }

    fn print(&mut self, _: &mut Machine, text: &str) {
        self.printed.push(text.to_string());
    }
}

/// A machine and its outside.
pub struct Bench {
    pub machine: Machine,
    pub world: World,
}

impl Bench {
    /// A machine for the bytes of an object.
    pub fn new(bytes: &[u8], settings: Settings) -> Bench {
        let object = Arc::new(Object::read(bytes).unwrap());
        let world = World::default();
        let machine = Machine::new(object, &settings, &world).unwrap();
        Bench { machine, world }
    }

    /// Runs a program.
    pub fn run(&mut self, program: &str, arguments: &[u64]) -> Result<u64, Fault> {
        let program = self.machine.object().program(program).unwrap();
        self.machine.run(&mut self.world, program, arguments)
    }
}
