//! The same operations on the C queue and on the Rust queue: every answer must be the same.
//!
//! All sequences of six operations (five under an emulator) on four tasks at two levels, and long
//! random ones. The
//! Rust queues have no `insert_front`; the reference puts a stack of such tasks before them.

use crate::target::{Answer, Missing, TARGETS, Target, for_each};
use readyq::catalog::{self, Visitor};
use readyq::{Level, Node, Nodes, ReadyQueue, Strides, TaskId};

const NONE: u8 = 255;
const QUEUES: [&str; 5] = ["rr", "priority", "ruler", "wheel", "rbtree"];

/// A verb of the script, by the number that `c/tests/script.c` knows.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Verb {
    Reset,
    Insert,
    InsertFront,
    Pop,
    Remove,
    Nth,
    Waits,
    Swap,
    Wipe,
}

type Op = (Verb, u8, u8);

/// A Rust queue, with the tasks before it that were inserted at the front.
#[derive(Clone)]
struct Side<Q> {
    queue: Q,
    front: Vec<u8>,
    /// The task that may be inserted at the front of a tree or wheel: the one that was popped last,
    /// with the key that it had then.
    last: Option<u8>,
}

/// Two queues for the same tasks, as the C program has them.
#[derive(Clone)]
struct Reference<Q> {
    name: &'static str,
    sides: [Side<Q>; 2],
    /// The side that is operated on.
    on: usize,
    slab: Vec<Node>,
    /// The side where a task waits.
    waits: Vec<Option<usize>>,
    level: Vec<u8>,
}

impl<Q: ReadyQueue + Clone> Reference<Q> {
    fn new(name: &'static str, queue: Q, tasks: usize) -> Self {
        let side = Side { queue, front: vec![], last: None };
        Reference {
            name,
            sides: [side.clone(), side],
            on: 0,
            slab: vec![Node::NEW; tasks],
            waits: vec![None; tasks],
            level: vec![0; tasks],
        }
    }

    /// Whether the contract allows it. A task that does not wait may be removed: nothing happens.
    fn allows(&self, (verb, task, _): Op) -> bool {
        let at = self.waits[task as usize];
        match verb {
            Verb::InsertFront if ["rbtree", "wheel"].contains(&self.name) => {
                self.sides[self.on].last == Some(task) && at.is_none()
            }
            Verb::Insert | Verb::InsertFront => at.is_none(),
            Verb::Remove => at.is_none_or(|side| side == self.on),
            _ => true,
        }
    }

    fn waiting_in_order(&self) -> Vec<u8> {
        let side = &self.sides[self.on];
        let mut order: Vec<u8> = side.front.iter().rev().copied().collect();
        side.queue.find(Nodes::from_ref(&self.slab), |task| {
            order.push(task.0 as u8);
            false
        });
        if self.name == "priority" {
            order.sort_by_key(|&task| self.level[task as usize]);
        }
        order
    }

    fn step(&mut self, op: Op) -> [u8; 2] {
        let (verb, task, level) = op;
        let first = self.waiting_in_order().first().copied().unwrap_or(NONE);
        let index = task as usize;
        let mut result = NONE;
        match verb {
            Verb::Reset | Verb::Wipe => unreachable!("no reference does this"),
            Verb::Swap => self.on = 1 - self.on,
            Verb::Insert => {
                let nodes = Nodes::from_mut(&mut self.slab);
                self.sides[self.on].queue.insert(nodes, TaskId(task.into()), Level(level.into()));
                for side in &mut self.sides {
                    side.last = side.last.filter(|&last| last != task);
                }
                (self.waits[index], self.level[index]) = (Some(self.on), level);
            }
            Verb::InsertFront => {
                self.sides[self.on].front.push(task);
                (self.waits[index], self.level[index]) = (Some(self.on), level);
            }
            Verb::Pop if first == NONE => {}
            Verb::Pop => {
                result = first;
                self.take(first, true);
                self.sides[self.on].last = Some(first);
            }
            Verb::Remove if self.waits[index].is_some() => self.take(task, false),
            Verb::Remove => {}
            Verb::Nth => {
                result = self.waiting_in_order().get(level as usize).copied().unwrap_or(NONE);
            }
            Verb::Waits => result = self.waits[index].is_some().into(),
        }
        [result, self.waiting_in_order().first().copied().unwrap_or(NONE)]
    }

    fn take(&mut self, task: u8, popped: bool) {
        let nodes = Nodes::from_mut(&mut self.slab);
        let Side { queue, front, .. } = &mut self.sides[self.on];
        self.waits[task as usize] = None;
        if let Some(place) = front.iter().position(|&other| other == task) {
            front.remove(place);
        } else if popped {
            assert_eq!(queue.pop(nodes), Some(TaskId(task.into())));
        } else {
            queue.remove(nodes, TaskId(task.into()));
        }
    }
}

/// Operations for the C program and the answers that it owes.
#[derive(Default)]
pub struct Script {
    ops: Vec<Op>,
    owed: Vec<u8>,
}

impl Script {
    fn begin(&mut self, tasks: usize) {
        self.ops.push((Verb::Reset, tasks as u8 - 1, 0));
        self.owed.extend([NONE, NONE]);
    }

    /// The input of `c/tests/script.c`.
    pub fn bytes(&self) -> Vec<u8> {
        self.ops.iter().flat_map(|&(verb, task, level)| [verb as u8, task, level]).collect()
    }

    fn sequences(&self) -> usize {
        self.ops.iter().filter(|op| op.0 == Verb::Reset).count()
    }

    /// Where the answers differ from those owed.
    fn fault(&self, Answer { output, complaint, code }: Answer) -> Option<String> {
        if code != Some(0) || output.len() != self.owed.len() {
            return Some(format!("{} answers, {code:?}: {complaint}", output.len()));
        }
        let place = (0..output.len()).find(|&place| output[place] != self.owed[place])? / 2;
        let begin = self.ops[..=place].iter().rposition(|op| op.0 == Verb::Reset).unwrap();
        Some(format!(
            "{:?} is answered by {:?} instead of {:?}, after {:?}",
            self.ops[place],
            &output[2 * place..2 * place + 2],
            &self.owed[2 * place..2 * place + 2],
            &self.ops[begin..place]
        ))
    }
}

/// Makes every sequence of `length` operations. Tasks that were never inserted are alike, so only
/// the first of them is tried.
struct Exhaustively {
    name: &'static str,
    length: usize,
    tasks: usize,
}

impl Exhaustively {
    fn sequences<Q: ReadyQueue + Clone>(
        &self,
        reference: &Reference<Q>,
        before: &mut Vec<(Op, [u8; 2])>,
        fresh: u8,
        script: &mut Script,
    ) {
        if before.len() == self.length {
            script.begin(self.tasks);
            script.ops.extend(before.iter().map(|(op, _)| op));
            script.owed.extend(before.iter().flat_map(|(_, answer)| answer));
            return;
        }
        let known = 0..(self.tasks as u8).min(fresh + 1);
        let mut ops = vec![(Verb::Pop, 0, 0)];
        for task in known {
            ops.extend([(Verb::Insert, task, 0), (Verb::Insert, task, 1)]);
            ops.extend([(Verb::InsertFront, task, 1), (Verb::Remove, task, 0)]);
        }
        ops.retain(|op| op.0 != Verb::Remove || reference.waits[op.1 as usize].is_some());
        for op in ops.into_iter().filter(|&op| reference.allows(op)) {
            let mut next = reference.clone();
            let answer = next.step(op);
            before.push((op, answer));
            let fresh = if op.0 == Verb::Pop { fresh } else { fresh.max(op.1 + 1) };
            self.sequences(&next, before, fresh, script);
            before.pop();
        }
    }
}

impl Visitor for &Exhaustively {
    type Out = Script;

    fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) -> Script {
        let mut script = Script::default();
        let reference = Reference::new(self.name, queue, self.tasks);
        self.sequences(&reference, &mut vec![], 0, &mut script);
        script
    }
}

/// Makes a long random mix on two queues.
struct AtRandom {
    name: &'static str,
    seed: u64,
    tasks: usize,
    levels: u8,
    length: usize,
}

impl Visitor for &AtRandom {
    type Out = Script;

    fn visit<Q: ReadyQueue + Clone + 'static>(self, queue: Q) -> Script {
        let mut random = crate::support::Lcg(self.seed);
        let mut reference = Reference::new(self.name, queue, self.tasks);
        let mut script = Script::default();
        script.begin(self.tasks);
        while script.ops.len() < self.length {
            let verb = match random.below(21) {
                0..8 => Verb::Insert,
                8 => Verb::InsertFront,
                9..17 => Verb::Pop,
                17 => Verb::Remove,
                18 => Verb::Nth,
                19 => Verb::Swap,
                _ => Verb::Waits,
            };
            let task = match reference.sides[reference.on].last {
                Some(last) if verb == Verb::InsertFront => last,
                _ => random.below(self.tasks as u64) as u8,
            };
            let op = (verb, task, random.below(self.levels.into()) as u8);
            if reference.allows(op) {
                script.owed.extend(reference.step(op));
                script.ops.push(op);
            }
        }
        script
    }
}

/// The scripts of one queue.
pub fn exhaustive(name: &'static str, length: usize) -> Script {
    let all = Exhaustively { name, length, tasks: 4 };
    catalog::visit(name, 2, Strides::Linear, &all).unwrap()
}

fn at_random(name: &'static str, seed: u64, tasks: usize, levels: u8) -> Script {
    // Few tasks go on for longer, so that short keys wrap.
    let length = if tasks == 2 { 60_000 } else { 20_000 };
    let mix = AtRandom { name, seed, tasks, levels, length };
    catalog::visit(name, levels.into(), Strides::Linear, &mix).unwrap()
}

fn mixes(name: &'static str) -> Vec<Script> {
    let mixes = [(1, 1), (3, 2), (8, 8), (33, 31), (64, 17)];
    let mix = |(&(tasks, levels), seed)| at_random(name, seed, tasks, levels);
    mixes.iter().zip(1..).map(mix).collect()
}

pub fn queue(name: &str) -> String {
    format!("-DQUEUE={}", 1 + QUEUES.iter().position(|&other| other == name).unwrap())
}

/// The first wrong answer to `scripts`.
fn check<'a>(
    target: &Target,
    scripts: impl IntoIterator<Item = &'a Script>,
    options: &[&str],
) -> Result<Option<String>, Missing> {
    let program = target.program("tests/script.c", options)?;
    for script in scripts {
        if let Some(fault) = script.fault(target.answer(&program, &script.bytes())?) {
            return Ok(Some(fault));
        }
    }
    Ok(None)
}

#[test]
fn the_order_is_that_of_the_rust_queues() {
    for name in QUEUES {
        // An emulator takes its time for the longer ones.
        let [native, emulated] = [6, 5].map(|length| exhaustive(name, length));
        let mixes = mixes(name);
        println!("{name}: {} and {} sequences", native.sequences(), emulated.sequences());
        for_each("the order of the C edition", |target| {
            let all = if target.native { &native } else { &emulated };
            let scripts = mixes.iter().chain([all]);
            let fault = check(target, scripts, &[&queue(name), "-O2"])?;
            assert_eq!(fault, None, "{name} on {}", target.name);
            Ok(())
        });
    }
}

#[test]
fn other_widths_and_sizes_have_the_same_order() {
    let cases = [
        ("priority", 64, 255, "-DRQ_PRIORITY_LEVELS=256"),
        ("priority", 64, 40, "-DRQ_PRIORITY_LEVELS=40"),
        ("ruler", 64, 64, "-DRQ_RULER_LEVELS=64"),
        ("ruler", 64, 7, "-DRQ_RULER_LEVELS=7"),
        ("ruler", 64, 32, "-DREADYQ_CHECK=(void)"),
        ("wheel", 64, 63, "-DRQ_WHEEL_BUCKETS=64"),
        ("wheel", 64, 31, "-DREADYQ_CHECK=(void)"),
        ("wheel", 2, 31, "-DRQ_KEY=uint16_t"),
        ("rbtree", 2, 200, "-DRQ_KEY=uint16_t"),
        ("rbtree", 64, 255, "-DRQ_KEY=uint64_t"),
        ("rbtree", 64, 255, "-DREADYQ_CHECK=(void)"),
    ];
    for (name, tasks, levels, option) in cases {
        let wide = at_random(name, 7, tasks, levels);
        for_each("other widths", |target| {
            let fault = check(target, [&wide], &[&queue(name), "-Os", option])?;
            assert_eq!(fault, None, "{name} {option} on {}", target.name);
            Ok(())
        });
    }
}

#[test]
fn nothing_undefined_happens() {
    for name in QUEUES {
        let options = [&queue(name), "-O1", "-fsanitize=undefined", "-fsanitize-trap=undefined"];
        match check(&TARGETS[1], &mixes(name), &options) {
            Ok(fault) => assert_eq!(fault, None, "{name}"),
            Err(Missing(why)) => eprintln!("skipped: undefined behaviour: {why}"),
        }
    }
}

#[test]
fn a_wrong_order_would_be_noticed() {
    for name in QUEUES {
        let all = exhaustive(name, 5);
        let fault = check(&TARGETS[0], [&all], &[&queue(name), "-O2", "-DMISTAKE"]).unwrap();
        assert!(fault.is_some(), "{name}: the mistake was not noticed");
    }
}

#[test]
fn a_checked_queue_stops_a_wrong_call_by_name() {
    use Verb::{Insert, InsertFront, Pop, Remove, Reset, Swap, Wipe};
    let reset = (Reset, 3, 0);
    let put = (Insert, 1, 0);
    let cases: [(&[&str], &[Op], &str); 9] = [
        (&QUEUES, &[reset, put, put], "_insert: the task waits already"),
        (&QUEUES, &[reset, put, (InsertFront, 1, 0)], "_insert_front: the task waits already"),
        (&QUEUES, &[reset, (Remove, 1, 0)], "_remove: the task does not wait"),
        (
            &QUEUES,
            &[reset, put, (Swap, 0, 0), (Remove, 1, 0)],
            "_remove: the task waits in another",
        ),
        (&QUEUES, &[reset, put, (Wipe, 1, 0), (Pop, 0, 0)], "_pop: a link was overwritten"),
        (&["priority", "ruler"], &[reset, (Insert, 1, 32)], "_insert: there is no such level"),
        (&["wheel"], &[reset, (Insert, 1, 31)], "_insert: the stride is too long"),
        (&QUEUES[..4], &[put], "_insert: the queue is not initialised"),
        (&QUEUES[..4], &[(InsertFront, 1, 0)], "_insert_front: the queue is not initialised"),
    ];
    for_each("misuse", |target| {
        for name in QUEUES {
            let program = target.program("tests/script.c", &[&queue(name), "-O2", "-DCHECKED"])?;
            for (queues, ops, why) in &cases {
                if queues.contains(&name) {
                    let script = Script { ops: ops.to_vec(), owed: vec![] };
                    let answer = target.answer(&program, &script.bytes())?;
                    let said = format!("rq_{name}{why}");
                    assert!(answer.complaint.starts_with(&said), "{said}: {}", answer.complaint);
                    assert_eq!(answer.code, Some(4), "{said} on {}", target.name);
                }
            }
        }
        Ok(())
    });
}

#[test]
fn the_headers_are_also_cpp() {
    for header in ["rq.h", "rq_wheel.h", "rq_rbtree.h"] {
        let mut compile = std::process::Command::new("g++");
        compile.args(["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]);
        compile.args(["-x", "c++", "-include"]).args([&crate::target::source(header)]);
        if let Err(Missing(why)) = crate::target::run(compile.arg("/dev/null")) {
            eprintln!("skipped: {header} as C++: {why}");
        }
    }
}

#[test]
fn the_example_of_the_readme_runs() {
    let read = |path: &str| std::fs::read_to_string(crate::target::source(path)).unwrap();
    let example = read("example.c");
    let shown = example.split_once("*/\n").unwrap().1;
    assert!(read("README.md").contains(shown.trim()), "c/README.md does not show c/example.c");
    let program = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("example-of-the-readme");
    for compiler in ["gcc", "clang-19"] {
        let mut make = std::process::Command::new("make");
        make.arg("-C").arg(crate::target::source("")).arg(format!("CC={compiler}"));
        make.arg(format!("EXAMPLE={}", program.display())).arg("-B");
        // Its variables for a make above it are not for this one.
        make.env_remove("MAKEFLAGS").env_remove("MFLAGS");
        let compiles = crate::target::run(std::process::Command::new(compiler).arg("--version"));
        let said = compiles
            .and_then(|_| crate::target::run(&mut make))
            .and_then(|_| crate::target::run(&mut std::process::Command::new(&program)));
        match said {
            Ok(said) => assert_eq!(said, "control control logger control control logger \n"),
            Err(Missing(why)) => eprintln!("skipped: the example with {compiler}: {why}"),
        }
    }
}
