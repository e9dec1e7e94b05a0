//! What schedulers see and may do, as in the kernel: each is a few lines of C that give up, by a
//! text, when they see something else.

mod common;
#[path = "common/compiler.rs"]
mod compiler;

use compiler::compile;

/// What every scheduler here has; its own operations come before.
const REST: &str = r#"
SEC("struct_ops/enqueue") void trial_enqueue(u64 *context) { enqueue(__arg(0, struct task_struct *), __arg(1, u64)); }
SEC("struct_ops/dispatch") void trial_dispatch(u64 *context) { dispatch(__arg(0, s32), __arg(1, struct task_struct *)); }
SEC("struct_ops/running") void trial_running(u64 *context) { running(__arg(0, struct task_struct *)); }
SEC("struct_ops/tick") void trial_tick(u64 *context) { tick(__arg(0, struct task_struct *)); }
SEC("struct_ops/init") s32 trial_init(u64 *context) { init(); return 0; }
SEC(".struct_ops.link") struct sched_ext_ops trial = {
	.enqueue = (void *)trial_enqueue, .dispatch = (void *)trial_dispatch, .running = (void *)trial_running,
	.tick = (void *)trial_tick, .init = (void *)trial_init, .flags = FLAGS, .name = "trial",
};
"#;

const HEAD: &str = r#"
#include "kernel.h"
#define SAY(text, number) do { static char format[] = text; u64 data[] = { number }; \
	scx_bpf_error_bstr(format, data, sizeof(data)); } while (0)
"#;

/// The operations that a scheduler leaves out.
const OTHERS: [(&str, &str); 6] = [
    (
        "enqueue(",
        "static void enqueue(struct task_struct *p, u64 flags) { scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 3000000, flags); }",
    ),
    ("dispatch(", "static void dispatch(s32 cpu, struct task_struct *prev) {}"),
    ("running(", "static void running(struct task_struct *p) {}"),
    ("tick(", "static void tick(struct task_struct *p) {}"),
    ("init(", "static void init(void) {}"),
    ("FLAGS", "#define FLAGS 0"),
];

/// How the scheduler of these operations ends: nothing if it is not ejected.
fn ends(operations: &str) -> Option<String> {
    let others = OTHERS.iter().filter(|(name, _)| {
        !operations.contains(&format!("void {name}"))
            && !operations.contains(&format!("define {name}"))
    });
    let others: Vec<&str> = others.map(|(_, text)| *text).collect();
    let source = [HEAD, operations, "\n", &others.join("\n"), REST].concat();
    common::run(&compile(&source), 100_000).expect("a scheduler")
}

/// That it is ejected with these words.
fn expect(operations: &str, words: &str) {
    let said = ends(operations).unwrap_or_default();
    assert!(said.contains(words), "{said:?} has no {words:?}");
}

#[test]
fn a_plain_scheduler_is_not_ejected() {
    assert_eq!(ends(""), None);
}

#[test]
fn dispatch_is_told_of_a_task_that_sleeps_from_now_on() {
    expect(
        "static void dispatch(s32 cpu, struct task_struct *prev) {
            if (prev && !(prev->scx.flags & 1)) SAY(\"task %d sleeps\", prev->pid);
        }",
        "sleeps",
    );
}

#[test]
fn a_kick_ends_a_slice_when_the_event_is_over() {
    expect(
        "static void tick(struct task_struct *p) {
            u64 before = p->scx.slice;
            scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
            if (before && p->scx.slice == before) SAY(\"%d still has it\", p->pid);
        }",
        "still has it",
    );
    // It does end: otherwise no task of an endless slice would ever go.
    expect(
        "static int ticks;
        static void enqueue(struct task_struct *p, u64 flags) {
            if (!(flags & 1) && ticks) SAY(\"%d comes again\", p->pid);
            scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_INF, flags);
        }
        static void tick(struct task_struct *p) {
            ticks++;
            scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
        }",
        "comes again",
    );
}

#[test]
fn a_cpu_that_dispatches_for_ever_ends_the_scheduler() {
    expect(
        "static void running(struct task_struct *p) {
            scx_bpf_kick_cpu(bpf_get_smp_processor_id(), SCX_KICK_PREEMPT);
        }",
        "again and again at one time",
    );
}

#[test]
fn addresses_at_the_end_of_all_are_faults() {
    expect(
        "extern bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym;
        static void tick(struct task_struct *p) {
            bpf_cpumask_test_cpu(2, (void *)~0ULL);
            bpf_cpumask_test_cpu(2, (void *)(~0ULL << 3));
        }",
        "tick",
    );
}

#[test]
fn a_global_queue_has_no_length_and_a_cpu_that_is_not_there_no_queue() {
    const LENGTH: &str = "extern s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;\n";
    expect(
        &[
            LENGTH,
            "static void tick(struct task_struct *p) {
            SAY(\"length %d\", scx_bpf_dsq_nr_queued(SCX_DSQ_GLOBAL));
        }",
        ]
        .concat(),
        "length -2",
    );
    expect(
        &[
            LENGTH,
            "static void tick(struct task_struct *p) {
            scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | 77);
        }",
        ]
        .concat(),
        "invalid CPU 77",
    );
}

#[test]
fn tables_that_the_kernel_refuses_are_refused() {
    let object = |flags: &str| {
        let others = OTHERS.map(|(_, text)| text)[..5].join("\n");
        compile(&[HEAD, flags, "\n", &others, REST].concat())
    };
    for wrong in [
        "#define FLAGS 1ULL << 40",
        "#define FLAGS 0, .timeout_ms = 30001",
        "#define FLAGS 0, .dispatch_max_batch = 1 << 20",
    ] {
        let said = common::run(&object(wrong), 1000);
        assert!(matches!(&said, Err(sched_ext::Unfit::Member(_))), "{wrong}: {said:?}");
    }
    assert!(common::run(&object("#define FLAGS 0, .timeout_ms = 30000"), 100_000).is_ok());
}

#[test]
fn members_of_the_table_are_set_as_a_loader_does() {
    let source = [HEAD, &OTHERS.map(|(_, text)| text).join("\n"), REST].concat();
    let object = compile(&source);
    let read = |name: &str, value: &str| {
        let loaded = sched_ext::Loaded::read(&object, &[(name.to_string(), value.to_string())]);
        loaded.map(|loaded| (loaded.flags(), loaded.timeout().0)).map_err(|unfit| unfit.to_string())
    };
    let default = 30_000_000_000;
    assert_eq!(read("ops.flags", "SCX_OPS_ENQ_LAST|SCX_OPS_ENQ_EXITING"), Ok((6, default)));
    assert_eq!(read("ops.flags", "0x12"), Ok((18, default)));
    assert_eq!(read("ops.timeout_ms", "5000"), Ok((0, 5_000_000_000)));
    for (name, value, words) in [
        ("ops.flags", "SCX_OPS_LAST", "or names joined by `|`: SCX_OPS_KEEP_BUILTIN_IDLE"),
        ("ops.flags", "0x80", "not all are known"),
        ("ops.timeout_ms", "30001", "at most 30000 is taken"),
        ("ops.timeout_ms", "soon", "give a whole number"),
        ("ops.name", "other", "give ops.flags, ops.timeout_ms, ops.dispatch_max_batch"),
    ] {
        let wrong = read(name, value).expect_err(value);
        assert!(wrong.contains(words), "{wrong}");
    }
}

/// The kernel ejects it too: `schedlab/tests/bare.rs`.
#[test]
fn a_function_of_queues_that_is_called_elsewhere_ends_the_scheduler() {
    expect(
        "static void running(struct task_struct *p) { scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 1, 0); }",
        "scx_bpf_dsq_insert called in running, only allowed in select_cpu, enqueue, dispatch",
    );
    expect(
        "static void enqueue(struct task_struct *p, u64 flags) { scx_bpf_dsq_move_to_local(SCX_DSQ_GLOBAL); }",
        "called in enqueue, only allowed in dispatch",
    );
    expect(
        "static void tick(struct task_struct *p) { scx_bpf_create_dsq(3, -1); }",
        "called in tick, only allowed in init_task, cgroup_init, init, exit",
    );
}
