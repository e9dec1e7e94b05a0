//! Schedulers without a program: objects in BPF and their sources, and what stands beside one that
//! fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The exit code, and all that is said.
fn compare(place: &Path, policies: &[&str], more: &[&str]) -> (Option<i32>, String) {
    compare_on("vm", place, policies, more)
}

fn compare_on(
    world: &str,
    place: &Path,
    policies: &[&str],
    more: &[&str],
) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    command.args(["compare", "yield:8", "--on", world, "--ensemble", "1"]).args(more);
    policies.iter().for_each(|policy| _ = command.args(["--policy", policy]));
    let output = command.current_dir(place).output().expect("it starts");
    let both = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&both).into_owned())
}

/// Whether the loader is there, and the newest compiler; says what is missing.
fn tools() -> Option<String> {
    if std::env::var_os("SCHEDLAB_SCX").is_none() {
        eprintln!("skipped: schedulers in BPF: SCHEDLAB_SCX does not name schedlab-scx");
        return None;
    }
    let runs = |name: &String| Command::new(name).arg("--version").output().is_ok();
    let clang = (18..=24).rev().map(|version| format!("clang-{version}")).find(runs);
    if clang.is_none() {
        eprintln!("skipped: schedulers in BPF: no clang from 18 on");
    }
    clang
}

/// Whether the loader, a compiler and real kernels are there; says what is missing.
fn is_possible() -> bool {
    tools().is_some()
        && worlds::vm::Qemu::find()
            .inspect_err(|missing| eprintln!("skipped: real kernels: {missing}"))
            .is_ok()
}

fn object(clang: &str, place: &Path, name: &str, text: &str) -> PathBuf {
    let (source, object) = (place.join(format!("{name}.c")), place.join(format!("{name}.bpf.o")));
    fs::write(&source, text).expect("a file");
    let mut compiler = Command::new(clang);
    compiler.args(["-target", "bpf", "-g", "-O2", "-c"]).arg(&source).arg("-o").arg(&object);
    assert!(compiler.status().expect("it runs").success(), "{name}");
    object
}

const OPS: &str = "struct sched_ext_ops { char name[128]; };\n\
    #define SCHEDULER(of) __attribute__((section(\".struct_ops.link\"), used)) \\\n\
    struct sched_ext_ops of = { .name = #of };\n\
    const volatile unsigned long long slice_ns __attribute__((used)) = 1;\n\
    const volatile unsigned char shift __attribute__((used)) = 1;\n";

#[test]
fn what_is_no_object_with_one_scheduler_is_refused_before_anything_is_booted() {
    let Some(clang) = tools() else { return };
    let place = tempfile::tempdir().expect("a folder");
    let at = place.path();
    object(&clang, at, "none", "int nothing __attribute__((used));\n");
    object(&clang, at, "one", &format!("{OPS}SCHEDULER(a)\n"));
    object(&clang, at, "two", &format!("{OPS}SCHEDULER(a)\nSCHEDULER(b)\n"));
    let mut machine = fs::read(at.join("one.bpf.o")).expect("an object");
    machine[0x12] = 0x3e;
    fs::write(at.join("x86.bpf.o"), machine).expect("a file");
    fs::write(at.join("text.bpf.o"), "text").expect("a file");
    fs::write(at.join("wrong.bpf.c"), "#include <scx/common.bpf.h>\nint x = y;\n").expect("a file");
    for (policy, code, words) in [
        ("scx:none.bpf.o", 3, &["none.bpf.o: it has no scheduler (no struct_ops)"][..]),
        ("scx:two.bpf.o", 3, &["it has 2 schedulers (struct_ops): ", "give an object with one"]),
        ("scx:x86.bpf.o", 3, &["another machine", "-target bpf"]),
        ("scx:text.bpf.o", 3, &["not an ELF file"]),
        ("scx:gone.bpf.o", 3, &["gone.bpf.o"]),
        ("scx:one.bpf.o slcie_ns=5ms", 2, &["no constant `slcie_ns`", "shift, slice_ns"]),
        ("scx:one.bpf.o shift=300", 2, &["8 bits", "300 does not fit"]),
        ("scx:one.bpf.o shift=fast", 2, &["a whole number"]),
        ("scx:one.bpf.o 5ms", 2, &["no constant with its value"]),
        ("scx:wrong.bpf.c", 3, &["wrong.bpf.c does not compile", "'y'"]),
    ] {
        let (is, said) = compare(at, &[policy], &[]);
        assert!(
            is == Some(code) && words.iter().all(|word| said.contains(word)),
            "{policy}: {is:?}: {said}"
        );
    }
}

/// One queue for all CPUs, first in, first out.
const FIFO: &str = r#"
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
const volatile u64 slice_ns = 0;
s32 BPF_STRUCT_OPS_SLEEPABLE(fifo_init) { return scx_bpf_create_dsq(7, -1); }
void BPF_STRUCT_OPS(fifo_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, TARGET, slice_ns ?: SCX_SLICE_DFL, enq_flags);
}
void BPF_STRUCT_OPS(fifo_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(7, 0);
}
SEC(".struct_ops.link")
struct sched_ext_ops fifo_ops = {
	.enqueue = (void *)fifo_enqueue,
	.dispatch = (void *)fifo_dispatch,
	.init = (void *)fifo_init,
	.name = "fifo",
};
"#;

/// The source schedules, and the same as an object with another slice does. One that the kernel
/// ejects has no number and the kernel's words, beside the numbers of the others.
#[test]
fn a_source_and_an_object_schedule_and_one_that_fails_leaves_the_others_their_numbers() {
    if !is_possible() {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    for (name, target) in [("good", "7"), ("bad", "SCX_DSQ_LOCAL_ON | 999")] {
        let text = FIFO.replace("TARGET", target);
        fs::write(place.path().join(format!("{name}.bpf.c")), text).expect("a file");
    }
    let policies =
        ["kernel:other", "scx:bad.bpf.c", "scx:good.bpf.c", "scx:good.bpf.c slice_ns=5ms"];
    let (code, said) = compare(place.path(), &policies, &["-o", "out"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("scx:bad.bpf.c failed (yield:8, 1 CPU): ") && said.contains("999"),
        "{said}"
    );
    // What each of them wrote is kept, and so are the kernel's words.
    let kept = |name: &str| {
        let file = place.path().join(format!("out/schedulers/{name}-yield_8-6.18-1cpu.txt"));
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    assert!(kept("scx_bad.bpf.c").contains("invalid CPU 999"), "{}", kept("scx_bad.bpf.c"));
    assert!(
        kept("scx_good.bpf.c").contains("# sched_ext: enabled, "),
        "{}",
        kept("scx_good.bpf.c")
    );
    let results = results::Results::read(&place.path().join("out/results.json")).expect("results");
    let of = |candidate: &str| {
        let own = results.rows.iter().filter(|row| row.metric.id() == "instructions_per_yield");
        own.clone().find(|row| row.candidate == candidate).unwrap_or_else(|| panic!("{candidate}"))
    };
    assert!(of("scx:bad.bpf.c").value.is_none() && of("scx:bad.bpf.c").note.is_some());
    let numbers = [policies[0], policies[2], policies[3]].map(|name| of(name).value.expect(name));
    assert!(numbers.iter().all(|value| (2_000.0..6_000.0).contains(value)), "{numbers:?}");
    assert!((numbers[1] / numbers[2] - 1.0).abs() < 0.02, "{numbers:?}");
}

/// A function of queues may be called where the kernel asks for it. Elsewhere it ends the scheduler,
/// in the kernel and in the simulator.
#[test]
#[ignore = "long: tools/long"]
fn a_function_called_out_of_place_ends_the_scheduler_in_the_kernel_and_in_the_simulator() {
    if !is_possible() {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    for (name, call, is_free) in [
        ("insert", "scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, 0)", false),
        ("move", "scx_bpf_dsq_move_to_local(7, 0)", false),
        ("slots", "scx_bpf_dispatch_nr_slots()", false),
        ("choose", "bool is_idle; scx_bpf_select_cpu_dfl(p, 0, 0, &is_idle)", false),
        ("count", "scx_bpf_dsq_nr_queued(7)", true),
    ] {
        let running =
            format!("void BPF_STRUCT_OPS(fifo_running, struct task_struct *p) {{ {call}; }}\n");
        let text = FIFO
            .replace("TARGET", "7")
            .replace("SEC(\".struct_ops", &(running + "SEC(\".struct_ops"));
        let text = text.replace(".init =", ".running = (void *)fifo_running,\n\t.init =");
        let file = format!("{name}.bpf.c");
        fs::write(place.path().join(&file), text).expect("a file");
        let policy = format!("scx:{file}");
        for (world, words) in [("sim", "called in running"), ("vm", "kfunc with mask")] {
            let (code, said) = compare_on(
                world,
                place.path(),
                &["kernel:other", &policy][usize::from(world == "sim")..],
                &["-o", world],
            );
            assert_eq!(code, Some(if is_free { 0 } else { 4 }), "{name}, {world}: {said}");
            assert!(is_free || said.contains(words), "{name}, {world}: {said}");
        }
    }
}

/// One queue for all CPUs, by virtual time.
const FAIR: &str = r#"
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
s32 BPF_STRUCT_OPS_SLEEPABLE(fair_init) { return scx_bpf_create_dsq(7, -1); }
void BPF_STRUCT_OPS(fair_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert_vtime(p, 7, SCX_SLICE_DFL, p->scx.dsq_vtime, enq_flags);
}
void BPF_STRUCT_OPS(fair_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(7, 0);
}
void BPF_STRUCT_OPS(fair_stopping, struct task_struct *p, bool runnable)
{
	p->scx.dsq_vtime += (SCX_SLICE_DFL - p->scx.slice) * 100 / p->scx.weight CHARGE;
}
SEC(".struct_ops.link")
struct sched_ext_ops fair_ops = {
	.enqueue = (void *)fair_enqueue,
	.dispatch = (void *)fair_dispatch,
	.stopping = (void *)fair_stopping,
	.init = (void *)fair_init,
	.name = "fair",
};
"#;

/// The simulator decides as the kernel with the same object, in the kernel's own state. One that
/// charges more in the simulator, whose tasks have other names, is found by its virtual times.
#[test]
#[ignore = "long: tools/long"]
fn slices_and_virtual_times_are_the_kernels() {
    if !is_possible() {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let load = "cpus = 1\nduration = \"400ms\"\n\
        [[task]]\nname = \"hog\"\nphases = [ { loop = { phases = [ { run = \"1s\" } ] } } ]\n\
        [[task]]\nname = \"nice\"\nnice = 5\nphases = [ { loop = { phases = [ { run = \"1s\" } ] } } ]\n\
        [[task]]\nname = \"light\"\ncount = 2\nphases = [ { loop = { phases = [ { run = \"300us\" }, \
        { sleep = \"2ms\" } ] } } ]\n";
    fs::write(place.path().join("load.toml"), load).expect("a file");
    let judged = |name: &str, charge: &str| {
        let text = FAIR.replace("CHARGE", charge);
        fs::write(place.path().join(format!("{name}.bpf.c")), text).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        command.args(["diff", "--decisions", "--explain", "load.toml", "-o", name, "--policy"]);
        command.arg(format!("scx:{name}.bpf.c")).current_dir(place.path());
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let file = place.path().join(name).join("results.json");
        let results = results::Results::read(&file).unwrap_or_else(|_| panic!("{said}"));
        let value = |metric: &str| {
            let row = results.rows.iter().find(|row| row.metric.id() == metric);
            row.and_then(|row| row.value).unwrap_or_else(|| panic!("no {metric}: {said}"))
        };
        (value("equal_decisions"), value("equal_task_states"), said)
    };
    let (decisions, states, said) = judged("right", "");
    assert!(decisions >= 0.99 && states >= 0.99, "{said}");
    let (_, states, said) =
        judged("wrong", "+ (p->comm[0] == 't' && p->comm[1] == 'a' ? 50000 : 0)");
    assert!(states < 0.8 && said.contains("Slices and virtual times that differ"), "{said}");
    assert!(said.contains("slices and virtual times") && said.contains("does not hold"), "{said}");
}
