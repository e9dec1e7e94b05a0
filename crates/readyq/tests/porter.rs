//! The printed results of Porter 2021: orders, schedules, periods, waits and rates, by the ids of
//! the project's checklist.
#![allow(missing_docs)]

mod support;

use readyq::multilist::{Schedule, Visit};
use readyq::{
    Level, MultiList1, MultiList2, Node, Nodes, PrintedMultiList, RbTree, ReadyQueue, RoundRobin,
    Ruler, RulerTable, SortedList, Strides, TaskId, schedules,
};
use support::{counts, letters, yielding};

fn order<Q: ReadyQueue>(mut queue: Q, levels: &[u16], slices: usize) -> String {
    let mut slab = vec![Node::NEW; levels.len()];
    letters(&yielding(&mut queue, Nodes::from_mut(&mut slab), levels, slices))
}

/// The tasks that run at the instants 1, 2, … of virtual time if task i has `strides[i]`; ties are
/// unordered.
fn instants(strides: &[u32], instants: u32) -> Vec<String> {
    let runs_at = |instant: u32| {
        (b'A'..).zip(strides).filter(move |(_, stride)| instant.is_multiple_of(**stride))
    };
    (1..=instants)
        .map(|instant| runs_at(instant).map(|(letter, _)| letter as char).collect())
        .collect()
}

/// Cuts `order` into groups as long as those of `like` and sorts each.
fn sorted_groups(mut order: &str, like: &[String]) -> Vec<String> {
    let mut group_of = |length| {
        let (group, rest) = order.split_at(length);
        order = rest;
        let mut letters: Vec<char> = group.chars().collect();
        letters.sort();
        letters.into_iter().collect()
    };
    like.iter().map(|group| group_of(group.len())).collect()
}

#[test]
fn p_alg01_p_alg02_linear_strides_give_the_printed_order_up_to_ties() {
    let meant = instants(&[1, 2, 3, 4, 5, 6, 7, 8], 18);
    let ours = order(RbTree::new(Strides::Linear), &[0, 1, 2, 3, 4, 5, 6, 7], meant.concat().len());
    assert_eq!(sorted_groups(&ours, &meant), meant);
    // The paper writes A before B at instant 2. FIFO gives B before A: B has waited since instant
    // 0, A since instant 1.
    assert!(ours.starts_with("ABACADBAEAFCBAGAHDBA"), "{ours}");
    let printed: Vec<&str> =
        "A AB AC ABD AE ABCF AG ABDH AC ABE A ABCDF A ABG ACE ABDH ABCF".split(' ').collect();
    assert_eq!(printed[..16], meant[..16]);
    // The paper leaves out instant 17.
    assert_eq!((printed[16], &*meant[16], &*meant[17]), ("ABCF", "A", "ABCF"));
}

#[test]
fn p_alg02_two_tasks_at_level_2() {
    // Printed `A AB1B2 AC AB1B2D AE AB1B2CF`; with B and C for B1 and B2 that is:
    let meant = instants(&[1, 2, 2, 3, 4, 5, 6], 6);
    assert_eq!(meant, ["A", "ABC", "AD", "ABCE", "AF", "ABCDG"]);
    let ours =
        order(SortedList::new(Strides::Linear), &[0, 1, 1, 2, 3, 4, 5], meant.concat().len());
    assert_eq!(sorted_groups(&ours, &meant), meant);
}

#[test]
fn p_alg03_doubling_strides_give_the_printed_order() {
    let printed = "A AB A ABC A AB A ABCD A AB A ABC A AB A ABCDE".replace(' ', "");
    let levels = [0, 1, 2, 3, 4];
    assert_eq!(order(MultiList2::new(), &levels, 31), printed);
    assert_eq!(order(Ruler::new(), &levels, 31), printed);
    let meant = instants(&[1, 2, 4, 8, 16], 16);
    assert_eq!(meant.concat(), printed);
    assert_eq!(
        sorted_groups(&order(RbTree::new(Strides::PowersOfTwo), &levels, 31), &meant),
        meant
    );
    // Linear strides restricted to 1, 2, 4, 8, 16 are the same order, ties included.
    assert_eq!(
        order(RbTree::new(Strides::Linear), &[0, 1, 3, 7, 15], 31),
        order(RbTree::new(Strides::PowersOfTwo), &levels, 31)
    );
    // Level 9 runs 1/512 as often as level 0.
    let slices = order(RbTree::new(Strides::PowersOfTwo), &[0, 9], 513 * 4);
    assert_eq!((slices.matches('A').count(), slices.matches('B').count()), (512 * 4, 4));
}

#[test]
fn p_alg04_one_task_per_visit_gives_wrong_rates() {
    // The paper's example: four A tasks, one B, one C, one D, one task per entry.
    let mut lists = [vec!["a1", "a2", "a3", "a4"], vec!["b1"], vec!["c1"], vec!["d1"]];
    let slices: Vec<&str> = (0..15)
        .map(|slice| {
            let list = &mut lists[RulerTable.entry(slice).level as usize];
            list.rotate_left(1);
            *list.last().unwrap()
        })
        .collect();
    assert_eq!(slices.join(" "), "a1 a2 b1 a3 a4 b1 c1 a1 a2 b1 a3 a4 b1 c1 d1");
    assert_eq!(
        slices.iter().filter(|&&slice| slice == "b1").count(),
        2 * slices.iter().filter(|&&slice| slice == "a1").count()
    );
}

#[test]
fn p_alg05_all_tasks_per_visit_give_the_right_rates() {
    // a1 a2 a3 a4 a1 a2 a3 a4 b1 a1 a2 a3 a4 a1 a2 a3 a4 b1 c1
    let levels = [0, 0, 0, 0, 1, 2];
    assert_eq!(order(MultiList2::new(), &levels, 19), "ABCDABCDEABCDABCDEF");
    assert_eq!(order(Ruler::new(), &levels, 19), "ABCDABCDEABCDABCDEF");
}

#[test]
fn p_alg06_periods_are_31_and_1023() {
    for (levels, period) in [(5u16, 31), (10, 1023)] {
        let all: Vec<u16> = (0..levels).collect();
        let slices = order(Ruler::new(), &all, 2 * period);
        assert_eq!(slices[..period], slices[period..]);
        let repeats =
            |shorter: &usize| slices[..period] == slices[..*shorter].repeat(period / shorter);
        assert_eq!(
            (1..period).filter(|shorter| period % shorter == 0).find(repeats),
            None,
            "a shorter period"
        );
    }
}

#[test]
fn p_alg07_the_unbunched_schedule() {
    let printed = "A-2 B-1 A-2 B-1 C-1 A-2 B-1 A-2 B-1 C-1 D-1";
    let spelled: String = printed
        .split(' ')
        .flat_map(|visit| {
            visit[..1].repeat(visit[2..].parse().unwrap()).chars().collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(order(MultiList2::new(), &[0, 1, 2, 3], 15), spelled);
}

#[test]
fn p_alg08_p_alg09_the_five_level_schedules_and_the_lock_out() {
    let run = |schedule: &'static [Visit], slices| {
        order(MultiList1::new(schedule), &[0, 1, 2, 3, 4], slices)
    };
    let once = format!("{}{}CCD", "A".repeat(8), "B".repeat(4));
    assert_eq!(run(&schedules::FIVE_LEVELS, 31), format!("{once}{once}E"));
    assert_eq!(
        run(&schedules::FIVE_LEVELS_SHORTEST, 31),
        format!("{}{}CCCCDDE", "A".repeat(16), "B".repeat(8))
    );
    // With slices of 2 ms the shortest schedule of ten levels locks out all other levels for 1.024
    // s, the printed one for 32 ms.
    let locked_out_ms = |schedule: &'static [Visit]| {
        let slices = order(MultiList1::new(schedule), &(0..10).collect::<Vec<_>>(), 2046);
        2 * slices.split(|slice| slice != 'A').map(str::len).max().unwrap()
    };
    assert_eq!(locked_out_ms(&schedules::TEN_LEVELS_SHORTEST), 1024);
    assert_eq!(locked_out_ms(&schedules::TEN_LEVELS), 32);
}

fn passes(schedule: &[Visit], levels: usize) -> Vec<u32> {
    (0..levels)
        .map(|level| {
            schedule
                .iter()
                .filter(|visit| visit.level as usize == level)
                .map(|visit| visit.passes as u32)
                .sum()
        })
        .collect()
}

#[test]
fn p_chk01_the_printed_schedules_sum_to_powers_of_two() {
    assert_eq!(passes(&schedules::TEN_LEVELS, 10), [512, 256, 128, 64, 32, 16, 8, 4, 2, 1]);
    assert_eq!(
        passes(&schedules::TEN_LEVELS_SHORTEST, 10),
        [512, 256, 128, 64, 32, 16, 8, 4, 2, 1]
    );
    assert_eq!(passes(&schedules::EIGHT_LEVELS, 8), [128, 64, 32, 16, 8, 4, 2, 1]);
    assert_eq!(passes(&schedules::FIVE_LEVELS, 5), [16, 8, 4, 2, 1]);
    assert_eq!(passes(&schedules::FIVE_LEVELS_SHORTEST, 5), [16, 8, 4, 2, 1]);
}

#[test]
fn p_chk02_the_table_of_255_entries() {
    let levels: Vec<u8> =
        (0..RulerTable.entries()).map(|index| RulerTable.entry(index).level).collect();
    assert_eq!(levels.len(), 255);
    let begins: String = levels[..31].iter().map(|level| (b'A' + level) as char).collect();
    assert_eq!(begins, "AABAABCAABAABCDAABAABCAABAABCDE");
    let count = |level| levels.iter().filter(|&&other| other == level).count();
    assert_eq!((0..8).map(count).collect::<Vec<_>>(), [128, 64, 32, 16, 8, 4, 2, 1]);
}

#[test]
fn rates_are_128_to_1_over_one_period() {
    let levels: Vec<u16> = (0..8).collect();
    let expected = [128, 64, 32, 16, 8, 4, 2, 1];
    let rates = |slices: String| {
        counts(&slices.bytes().map(|letter| (letter - b'A') as u32).collect::<Vec<_>>(), 8)
    };
    assert_eq!(rates(order(MultiList2::new(), &levels, 255)), expected);
    assert_eq!(rates(order(Ruler::new(), &levels, 255)), expected);
    assert_eq!(rates(order(MultiList1::new(&schedules::EIGHT_LEVELS), &levels, 255)), expected);
    assert_eq!(rates(order(RbTree::new(Strides::PowersOfTwo), &levels, 255)), expected);
}

/// The longest time between two slices of each level, in passes of level 0, if all levels have one
/// task.
fn longest_waits<Q: ReadyQueue>(queue: Q, levels: u16) -> Vec<usize> {
    let slices = order(queue, &(0..levels).collect::<Vec<_>>(), 4 << levels);
    (0..levels as u8)
        .map(|level| {
            let own = (b'A' + level) as char;
            slices.split(own).skip(1).map(|between| between.matches('A').count()).max().unwrap()
        })
        .collect()
}

#[test]
fn p_alg16_bunches_multiply_the_waits_by_8_4_2_1() {
    // Measured in slices of level 0, which is virtual time, a level waits 2^l when it is not
    // bunched.
    let smooth = longest_waits(Ruler::new(), 10);
    let bunched = longest_waits(MultiList1::new(&schedules::TEN_LEVELS), 10);
    let multipliers: Vec<f64> =
        (1..10).map(|level| bunched[level] as f64 / smooth[level] as f64).collect();
    assert_eq!(smooth[1..], [2, 4, 8, 16, 32, 64, 128, 256, 512]);
    assert_eq!(multipliers, [8.0, 4.0, 4.0, 4.0, 4.0, 2.0, 1.0, 1.0, 1.0]);
}

/// Two tasks of one level wake each other and block; a third, one level worse, yields. Returns the
/// slices of each.
fn conspiracy<Q: ReadyQueue>(mut queue: Q) -> [usize; 3] {
    let mut slab = [Node::NEW; 3];
    let nodes = Nodes::from_mut(&mut slab);
    queue.insert(nodes, TaskId(0), Level(0));
    queue.insert(nodes, TaskId(2), Level(1));
    let mut slices = [0; 3];
    for _ in 0..10_000 {
        let task = queue.pop(nodes).unwrap();
        slices[task.index()] += 1;
        match task {
            TaskId(2) => queue.insert(nodes, task, Level(1)),
            conspirator => {
                queue.insert(nodes, TaskId(1 - conspirator.0), Level(0));
                queue.block(nodes, conspirator);
            }
        }
    }
    slices
}

#[test]
fn p_alg13_the_printed_repair_starves_and_the_fixed_one_does_not() {
    assert_eq!(conspiracy(PrintedMultiList::new(RulerTable)), [5000, 5000, 0]);
    assert_eq!(conspiracy(PrintedMultiList::new(&schedules::TEN_LEVELS[..])), [5000, 5000, 0]);
    // Level 1 gets its third of the passes.
    let [first, second, third] = conspiracy(MultiList2::new());
    assert_eq!(third, 3333);
    assert!(first.abs_diff(second) <= 1, "{first} and {second}");
    assert_eq!(conspiracy(Ruler::new()), [first, second, third]);
    assert_eq!(conspiracy(MultiList1::new(&schedules::FIVE_LEVELS))[2], 3332);
}

#[test]
fn p_alg11_without_blocking_the_printed_rule_is_the_fixed_one() {
    let levels = [0, 0, 3, 1, 4, 1, 0, 7];
    assert_eq!(
        order(PrintedMultiList::new(RulerTable), &levels, 5000),
        order(MultiList2::new(), &levels, 5000)
    );
    assert_eq!(
        order(PrintedMultiList::new(&schedules::TEN_LEVELS[..]), &levels, 5000),
        order(MultiList1::new(&schedules::TEN_LEVELS), &levels, 5000)
    );
}

#[test]
fn p_alg13_the_printed_repair_covers_a_killed_list_last_in_all_three_cases() {
    let mut slab = [Node::NEW; 4];
    let nodes = Nodes::from_mut(&mut slab);
    let mut queue = PrintedMultiList::new(RulerTable);
    let insert = |queue: &mut PrintedMultiList<RulerTable>, nodes: &mut Nodes, task, level| {
        queue.insert(nodes, TaskId(task), Level(level))
    };
    // The list has another last task.
    for task in 0..3 {
        insert(&mut queue, nodes, task, 0);
    }
    insert(&mut queue, nodes, 3, 1);
    assert_eq!(queue.pop(nodes), Some(TaskId(0)));
    queue.remove(nodes, TaskId(2));
    // The list is empty, and the running task came from it.
    insert(&mut queue, nodes, 0, 0);
    assert_eq!(queue.pop(nodes), Some(TaskId(1)));
    queue.remove(nodes, TaskId(0));
    insert(&mut queue, nodes, 1, 0);
    // The list is empty, and the running task came from elsewhere: the schedule moves on.
    let mut queue = PrintedMultiList::new(RulerTable);
    let mut slab = [Node::NEW; 4];
    let nodes = Nodes::from_mut(&mut slab);
    for task in 0..2 {
        queue.insert(nodes, TaskId(task), Level(0));
    }
    queue.insert(nodes, TaskId(3), Level(1));
    assert_eq!(queue.pop(nodes), Some(TaskId(0)));
    queue.block(nodes, TaskId(0));
    queue.remove(nodes, TaskId(1));
    assert_eq!(queue.pop(nodes), Some(TaskId(3)));
}

#[test]
fn round_robin_ignores_levels() {
    assert_eq!(order(RoundRobin::new(), &[0, 9, 4], 9), "ABCABCABC");
}
