//! Calls the C functions from Rust, so that Miri can check them.
#![allow(missing_docs)]

use readyq_c::*;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

#[test]
fn every_function_on_every_structure() {
    for kind in 1..=7 {
        let mut nodes: MaybeUninit<[CNode; 4]> = MaybeUninit::uninit();
        let mut queue: MaybeUninit<CQueue> = MaybeUninit::zeroed();
        let (nodes, queue) = (nodes.as_mut_ptr().cast::<CNode>(), queue.as_mut_ptr());
        let mut task = 99;
        // SAFETY: both pointers are valid for these calls, and null is allowed.
        unsafe {
            assert_eq!(rq_nodes_init(nodes, 4), Status::Ok);
            assert_eq!(rq_pop(queue, nodes, 4, &mut task), Status::BadQueue);
            assert_eq!(rq_levels(queue), 0);
            assert_eq!(rq_init(queue, kind, Stride::Linear as u32, 1), Status::Ok);
            for id in 0..4 {
                assert_eq!(rq_insert(queue, nodes, 4, id, 3), Status::Ok);
            }
            assert_eq!(rq_insert(queue, nodes, 4, 4, 3), Status::BeyondSlab);
            assert_eq!(rq_insert(queue, nodes, 4, 1, 3), Status::AlreadyWaiting);
            assert_eq!(rq_remove(queue, nodes, 4, 1), Status::Ok);
            assert_eq!((rq_peek(queue, nodes, 4, &mut task), task), (Status::Ok, 0));
            for expected in [0, 2, 3] {
                assert_eq!((rq_pop(queue, nodes, 4, &mut task), task), (Status::Ok, expected));
            }
            assert_eq!(rq_pop(queue, nodes, 4, &mut task), Status::Empty);
            assert_eq!(rq_pop(null_mut(), nodes, 4, &mut task), Status::NullPointer);
            assert_eq!(rq_pop(queue, null_mut(), 4, &mut task), Status::NullPointer);
            assert_eq!(rq_pop(queue, nodes, 4, null_mut()), Status::NullPointer);
        }
    }
}
