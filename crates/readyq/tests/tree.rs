//! The tree as other crates use it: their keys, their order, a value per subtree in their tables.

use readyq::tree::{Augment, Tree};
use readyq::{Node, Nodes, TaskId};

/// Deterministic and good enough to choose operations by.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// The least weight below each task.
struct Least<'a> {
    weight: &'a [u64],
    least: &'a mut [u64],
}

impl Augment for Least<'_> {
    fn recompute(&mut self, _nodes: &Nodes, task: TaskId, left: Option<TaskId>, right: Option<TaskId>) -> bool {
        let below = [left, right].into_iter().flatten().map(|child| self.least[child.index()]).min();
        let least = self.weight[task.index()].min(below.unwrap_or(u64::MAX));
        std::mem::replace(&mut self.least[task.index()], least) != least
    }
}

/// Walks the tree; returns its tasks in order, its height and the least weight, checking the links and `least` on the way.
fn check(tree: &Tree, nodes: &Nodes, task: Option<TaskId>, weight: &[u64], least: &[u64], order: &mut Vec<TaskId>) -> (u32, u64) {
    let Some(task) = task else { return (0, u64::MAX) };
    let (left, right) = (tree.left(nodes, task), tree.right(nodes, task));
    for child in [left, right].into_iter().flatten() {
        assert_eq!(tree.parent(nodes, child), Some(task));
    }
    let (height_left, least_left) = check(tree, nodes, left, weight, least, order);
    order.push(task);
    let (height_right, least_right) = check(tree, nodes, right, weight, least, order);
    let below = least_left.min(least_right).min(weight[task.index()]);
    assert_eq!(least[task.index()], below, "augmented value of {task:?}");
    (1 + height_left.max(height_right), below)
}

#[test]
fn order_balance_links_and_augmentation_hold_under_random_use() {
    const TASKS: u64 = 200;
    for seed in 0..20 {
        let mut random = Lcg(seed);
        let mut slab = vec![Node::NEW; TASKS as usize];
        let nodes = Nodes::from_mut(&mut slab);
        let mut tree = Tree::new();
        let mut key = vec![0; TASKS as usize];
        let mut weight = vec![0; TASKS as usize];
        let mut least = vec![0; TASKS as usize];
        let mut expected: Vec<TaskId> = vec![];
        for _ in 0..3000 {
            let task = TaskId(random.below(TASKS) as u32);
            let waits = expected.iter().position(|&other| other == task);
            match (waits, random.below(4)) {
                (Some(position), 0 | 1) => {
                    expected.remove(position);
                    tree.remove_augmented(nodes, task, &mut Least { weight: &weight, least: &mut least });
                }
                (Some(_), 2) => {
                    weight[task.index()] = random.below(1000);
                    tree.recompute_up(nodes, task, &mut Least { weight: &weight, least: &mut least });
                }
                (Some(_), _) => {
                    let popped = tree.pop_first_augmented(nodes, &mut Least { weight: &weight, least: &mut least });
                    assert_eq!(popped, Some(expected.remove(0)));
                }
                (None, _) => {
                    key[task.index()] = random.below(40);
                    weight[task.index()] = random.below(1000);
                    let position = expected.partition_point(|other| key[other.index()] <= key[task.index()]);
                    expected.insert(position, task);
                    let place = tree.place(nodes, |_, other| key[task.index()] < key[other.index()]);
                    tree.insert_at(nodes, task, place, &mut Least { weight: &weight, least: &mut least });
                }
            }
            let mut order = vec![];
            let (height, _) = check(&tree, nodes, tree.root(), &weight, &least, &mut order);
            assert_eq!(order, expected);
            assert_eq!(tree.first(), expected.first().copied());
            assert_eq!(tree.is_empty(), expected.is_empty());
            assert!(height <= 2 * (expected.len() as u32 + 1).ilog2() + 1, "height {height} with {} tasks", expected.len());
            let mut walked = vec![];
            assert_eq!(
                tree.find(nodes, |task| {
                    walked.push(task);
                    false
                }),
                None
            );
            assert_eq!(walked, expected);
        }
    }
}
