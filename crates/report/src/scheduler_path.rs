//! The instructions of an operation as a flame graph: the operation, the parts of the scheduler's
//! path that it goes through, and their functions.
//!
//! QEMU's plugin counts by address and sees no callers, so a function belongs to a part by its
//! name. Linux keeps names from release to release. A function that several parts call is a part's
//! own only where its name says so. What accounts for time and load, takes locks or is called from
//! everywhere are parts of their own. The picture lies on its side, with the operation at the left,
//! so that names can be read on a phone.

use super::tables::escape;
use std::fmt::Write;

/// A part of the path, and the names of its functions: whole, or with `*` for any end.
struct Part {
    name: &'static str,
    functions: &'static [&'static str],
}

/// In order: the first that matches counts.
const PARTS: [Part; 11] = [
    Part { name: "the task", functions: &["(the task itself)"] },
    Part {
        name: "switch",
        functions: &[
            "__switch_to*",
            "switch_mm*",
            "finish_task_switch*",
            "native_load_*",
            "asm_load_gs_index*",
            "*_fpregs_*",
            "fpregs_*",
            "switch_fpu_*",
            "x86_task_fpu*",
            "mm_cid_*",
            "mm_needs_global_asid*",
            "migrate_disable_switch*",
            "prepare_task_switch*",
            "context_switch*",
        ],
    },
    Part {
        name: "pick",
        functions: &[
            "pick_*",
            "__pick_*",
            "set_next_*",
            "__set_next_*",
            "put_prev_*",
            "vruntime_eligible*",
            "balance_*",
            "newidle_balance*",
            "sched_balance_newidle*",
            "yield_*",
            "clear_buddies*",
            "do_pick_task*",
        ],
    },
    Part { name: "dequeue", functions: &["dequeue_*", "__dequeue_*", "rb_erase*", "__rb_erase*"] },
    Part {
        name: "enqueue",
        functions: &[
            "enqueue_*",
            "__enqueue_*",
            "place_entity*",
            "requeue_*",
            "rb_insert*",
            "__rb_insert*",
            "min_vruntime_cb_*",
            "pslist_*",
        ],
    },
    Part {
        name: "wakeup",
        functions: &[
            "try_to_wake_up*",
            "ttwu_*",
            "select_task_rq*",
            "select_idle_*",
            "wakeup_*",
            "check_preempt_*",
            "*resched_curr*",
            "__wake_up*",
            "autoremove_wake_function*",
            "default_wake_function*",
        ],
    },
    Part {
        name: "accounting",
        functions: &[
            "update_*",
            "__update_*",
            "psi_*",
            "record_times*",
            "avg_vruntime*",
            "entity_lag*",
            "reweight_*",
            "propagate_entity_*",
            "cpuacct_*",
            "*sched_clock*",
            "dl_server_*",
            "check_cfs_rq_runtime*",
            "arch_scale_*",
            "hrtick_*",
            "rcu_note_context_switch*",
        ],
    },
    Part {
        name: "BPF and sched_ext",
        functions: &["scx_*", "bpf_*", "__bpf_*", "*_scx*", "ops_*"],
    },
    Part {
        name: "schedule",
        functions: &["schedule*", "__schedule*", "do_sched_yield*", "__do_sys_sched_yield*"],
    },
    Part {
        name: "entry and exit",
        functions: &[
            "entry_*",
            "*syscall*",
            "x64_sys_call*",
            "*exit_to_user_mode*",
            "irqentry_*",
            "asm_*",
            "sync_regs*",
            "error_entry*",
            "__irqentry_*",
        ],
    },
    Part {
        name: "locks",
        functions: &["*spin_lock*", "*spin_unlock*", "raw_spin_rq_*", "*task_rq_lock*", "mutex_*"],
    },
];
const OTHERS: &str = "other functions";

fn is_named(pattern: &str, function: &str) -> bool {
    let inner = pattern.trim_matches('*');
    match (pattern.starts_with('*'), pattern.ends_with('*')) {
        (true, true) => function.contains(inner),
        (true, false) => function.ends_with(inner),
        (false, true) => function.starts_with(inner),
        (false, false) => function == inner,
    }
}

fn part_of(function: &str) -> &'static str {
    let is_of = |part: &&Part| part.functions.iter().any(|name| is_named(name, function));
    PARTS.iter().find(is_of).map_or(OTHERS, |part| part.name)
}

/// Where columns begin, the width of all, and the least height of a line of text.
const COLUMNS: [f64; 4] = [0.0, 34.0, 138.0, 360.0];
const LINE: f64 = 13.0;
/// The height of the operation with the most instructions.
const HEIGHT: f64 = 560.0;

/// Functions with their instructions, of one part.
struct Share<'a> {
    name: &'static str,
    all: f64,
    functions: Vec<(&'a str, f64)>,
}

fn shares<'a>(functions: &[(&'a str, f64)]) -> Vec<Share<'a>> {
    let mut shares: Vec<Share<'a>> = Vec::new();
    for &(function, count) in functions {
        let name = part_of(function);
        match shares.iter_mut().find(|share| share.name == name) {
            Some(share) => {
                share.all += count;
                share.functions.push((function, count));
            }
            None => shares.push(Share { name, all: count, functions: vec![(function, count)] }),
        }
    }
    shares.sort_by(|a, b| b.all.total_cmp(&a.all));
    shares
}

/// The picture of an operation that consists of `functions`, the most first. An operation of `most`
/// instructions has the full height.
pub fn picture(functions: &[(&str, f64)], most: f64) -> String {
    let all: f64 = functions.iter().map(|(_, count)| count).sum();
    let scale = HEIGHT / most;
    let height = (all * scale).max(LINE);
    let mut svg = format!(
        "<svg class=flame viewBox=\"0 0 {} {height:.1}\" role=img aria-label=\"{all:.1} \
         instructions by part of the scheduler's path and by function\">\n",
        COLUMNS[3]
    );
    svg += &cell(0, 0.0, height, 0, &format!("all: {all:.1} instructions"), "");
    let mut top = 0.0;
    for (number, share) in shares(functions).iter().enumerate() {
        let (color, percent) = (number + 1, 100.0 * share.all / all);
        let title = format!("{}: {:.1} instructions, {percent:.1} %", share.name, share.all);
        // The number first: a long name is cut.
        let text = format!("{percent:.0} % {}", share.name);
        svg += &cell(1, top, share.all * scale, color, &title, &text);
        let mut below = top;
        for (function, count) in &share.functions {
            let title = format!("{function}: {count:.1} instructions, in {}", share.name);
            let text = format!("{function} {count:.0}");
            svg += &cell(2, below, count * scale, color, &title, &text);
            below += count * scale;
        }
        top += share.all * scale;
    }
    svg + "</svg>\n"
}

/// A rectangle in a column, with its text if that fits; the title is shown to a pointer and read
/// aloud.
fn cell(column: usize, top: f64, height: f64, color: usize, title: &str, text: &str) -> String {
    let (left, width) = (COLUMNS[column], COLUMNS[column + 1] - COLUMNS[column]);
    let mut svg = format!(
        "<g><title>{}</title><rect class=c{color} x=\"{left}\" y=\"{top:.2}\" \
         width=\"{:.1}\" height=\"{:.2}\"/>",
        escape(title),
        width - 1.0,
        (height - 0.4).max(0.2)
    );
    if height >= LINE && !text.is_empty() {
        // A character is about 5.6 wide.
        let shown: String = text.chars().take((width / 5.6) as usize).collect();
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.2}\">{}</text>",
            left + 3.0,
            top + height.min(3.0 * LINE) / 2.0 + 3.5,
            escape(&shown)
        );
    }
    svg + "</g>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_yield_belong_to_the_parts_that_their_names_say() {
        for (function, part) in [
            ("__enqueue_entity", "enqueue"),
            ("dequeue_task_fair", "dequeue"),
            ("pick_eevdf", "pick"),
            ("__switch_to_asm", "switch"),
            ("do_syscall_64", "entry and exit"),
            ("__schedule", "schedule"),
            ("_raw_spin_lock_irqsave", "locks"),
            ("update_curr", "accounting"),
            ("sched_clock_cpu", "accounting"),
            ("try_to_wake_up", "wakeup"),
            ("scx_dispatch_enqueue", "BPF and sched_ext"),
            ("(the task itself)", "the task"),
            ("vfs_read", OTHERS),
        ] {
            assert_eq!(part_of(function), part, "{function}");
        }
    }

    /// The heights of the rectangles in a column.
    fn heights(svg: &str, column: usize) -> Vec<f64> {
        let begin = format!("x=\"{}\"", COLUMNS[column]);
        let of = |line: &str| -> Option<f64> {
            let rect = line.split("<rect").nth(1).filter(|rect| rect.contains(&begin))?;
            rect.split("height=\"").nth(1)?.split('"').next()?.parse().ok()
        };
        svg.lines().filter_map(of).collect()
    }

    #[test]
    fn heights_are_instructions_in_every_column_and_names_are_escaped() {
        let functions =
            [("__schedule", 400.0), ("pick_eevdf", 300.0), ("<odd>", 200.0), ("pick_task", 100.0)];
        let svg = picture(&functions, 2000.0);
        for column in 0..3 {
            let columns = heights(&svg, column);
            let sum: f64 = columns.iter().map(|height| height + 0.4).sum();
            assert!((sum - HEIGHT / 2.0).abs() < 0.1, "column {column}: {columns:?}");
        }
        let expected: Vec<f64> =
            [400.0, 300.0, 100.0, 200.0].iter().map(|count| count * HEIGHT / 2000.0).collect();
        for (height, expected) in heights(&svg, 2).iter().zip(&expected) {
            assert!((height + 0.4 - expected).abs() < 0.01, "{height}: {expected}");
        }
        // Both functions that pick are in one part.
        assert_eq!(heights(&svg, 1).len(), 3);
        assert!(svg.contains("&lt;odd&gt;") && !svg.contains("<odd>"), "{svg}");
        assert!(svg.contains("<title>pick: 400.0 instructions, 40.0 %</title>"), "{svg}");
        // One that is too small for a line has a title alone.
        let thin = picture(&[("a", 1999.0), ("pick_task", 1.0)], 2000.0);
        assert!(thin.contains("pick_task: 1.0 instructions") && !thin.contains(">pick_task 1<"));
    }
}
