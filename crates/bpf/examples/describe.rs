//! Says what an object file has and what it needs: `describe FILE.bpf.o`.

use bpf::{Object, Operation, helper_name};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let object = Object::read(&std::fs::read(&path)?)?;
        println!("{path}: licence {}, {} programs", object.license(), object.programs().len());
        for table in object.struct_ops() {
            println!("  table {} ({}, {})", table.name, table.kind, table.section);
            for (name, operation) in &table.members {
                match operation {
                    Operation::Program(program) => {
                        let program = &object.programs()[program.0 as usize];
                        println!("    {name}: {}, {} instructions", program.name, program.length);
                    }
                    Operation::Bytes(bytes) if bytes.iter().any(|&byte| byte != 0) => {
                        println!("    {name}: {} bytes", bytes.len());
                    }
                    Operation::Bytes(_) => {}
                }
            }
        }
        for map in object.maps() {
            let (key, value) = (map.key_size, map.value_size);
            println!(
                "  map {} {:?}: {key} -> {value} × {}, flags {}, inner {:?} {:?}",
                map.name, map.kind, map.max_entries, map.flags, map.inner, map.initial
            );
        }
        let needs = object.needs(&object.entries());
        for function in &needs.functions {
            println!("  function {:?}", object.functions()[function.0 as usize]);
        }
        for &helper in &needs.helpers {
            println!("  helper {helper} {}", helper_name(helper).unwrap_or("?"));
        }
        for setting in object.kconfig() {
            println!("  setting {setting:?}");
        }
        for variable in object.variables() {
            println!("  variable {variable:?}");
        }
        println!("  {} globals", object.globals().len());
        for (program, instruction, why) in needs.refused.iter().take(5) {
            let line = object.line(*program, *instruction);
            let name = &object.programs()[program.0 as usize].name;
            println!("  refused {name} {instruction}: {why} {line:?}");
        }
    }
    Ok(())
}
