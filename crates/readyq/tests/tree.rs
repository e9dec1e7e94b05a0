//! Tests the tree as other crates use it, with their own keys and orders.

use readyq::tree::Tree;
use readyq::{Node, Nodes, TaskId};

/// Deterministic and good enough to choose operations by.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// Walks the tree and appends its tasks in order; returns its height, checking the links on the
/// way.
fn check(tree: &Tree, nodes: &Nodes, task: Option<TaskId>, order: &mut Vec<TaskId>) -> u32 {
    let Some(task) = task else { return 0 };
    let (left, right) = (tree.left(nodes, task), tree.right(nodes, task));
    for child in [left, right].into_iter().flatten() {
        assert_eq!(tree.parent(nodes, child), Some(task));
    }
    let height_left = check(tree, nodes, left, order);
    order.push(task);
    1 + height_left.max(check(tree, nodes, right, order))
}

#[test]
fn order_balance_and_links_hold_under_random_use() {
    const TASKS: u64 = 200;
    for seed in 0..20 {
        let mut random = Lcg(seed);
        let mut slab = vec![Node::NEW; TASKS as usize];
        let nodes = Nodes::from_mut(&mut slab);
        let mut tree = Tree::new();
        let mut key = vec![0; TASKS as usize];
        let mut expected: Vec<TaskId> = vec![];
        for _ in 0..3000 {
            let task = TaskId(random.below(TASKS) as u32);
            let waits = expected.iter().position(|&other| other == task);
            match (waits, random.below(3)) {
                (Some(position), 0 | 1) => {
                    expected.remove(position);
                    tree.remove(nodes, task);
                }
                (Some(_), _) => assert_eq!(tree.pop_first(nodes), Some(expected.remove(0))),
                (None, _) => {
                    key[task.index()] = random.below(40);
                    let position =
                        expected.partition_point(|other| key[other.index()] <= key[task.index()]);
                    expected.insert(position, task);
                    tree.insert_by(nodes, task, |_, a, b| key[a.index()] < key[b.index()]);
                }
            }
            let mut order = vec![];
            let height = check(&tree, nodes, tree.root(), &mut order);
            assert_eq!(order, expected);
            assert_eq!(tree.first(), expected.first().copied());
            assert_eq!(tree.is_empty(), expected.is_empty());
            assert!(
                height <= 2 * (expected.len() as u32 + 1).ilog2() + 1,
                "height {height} with {} tasks",
                expected.len()
            );
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
