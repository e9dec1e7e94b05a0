#!/usr/bin/env python3
"""Plays the red-black tree of Linux 6.18's fair queue after a history, to see which request the
kernel holds to be the shortest in the queue.

    min_slice.py tests/stale-min-slice.jsonl

lib/rbtree.c keeps two numbers of each subtree here, min_vruntime and min_slice, but the callbacks of
RB_DECLARE_CALLBACKS copy only the first when the tree rotates. A running task is protected for the
min_slice of the root (set_protect_slice). Prints where that is not the shortest request in the queue,
and each tick at which it, or the true shortest, does not explain whether the kernel wanted a pick.
Ends with 4 if the tree does not explain all ticks."""

import json
import sys

OTHER = {"left": "right", "right": "left"}


class Node:
    def __init__(self):
        self.left = self.right = self.parent = None
        self.red, self.deadline, self.vruntime, self.slice = True, 0, 0, 0
        self.min_vruntime = self.min_slice = 0


class Tree:
    root = None

    def compute(self, node):
        """Both minima of a subtree. Whether they stay."""
        before = node.min_vruntime, node.min_slice
        below = [child for child in (node.left, node.right) if child]
        node.min_vruntime = min([node.vruntime] + [child.min_vruntime for child in below])
        node.min_slice = min([node.slice] + [child.min_slice for child in below])
        return before == (node.min_vruntime, node.min_slice)

    def propagate(self, node, stop=None):
        while node is not stop and not self.compute(node):
            node = node.parent

    def rotated(self, old, new):
        new.min_vruntime = old.min_vruntime  # and not min_slice
        self.compute(old)

    def replace(self, old, new, parent):
        if parent is None:
            self.root = new
        else:
            setattr(parent, "left" if parent.left is old else "right", new)

    def rotate(self, old, new, side, red):
        """new, the child of old on this side, takes its place."""
        other = OTHER[side]
        moved = getattr(new, other)
        setattr(old, side, moved)
        setattr(new, other, old)
        if moved:
            moved.parent = old
        self.replace(old, new, old.parent)
        new.parent, old.parent = old.parent, new
        if red is not None:
            new.red, old.red = old.red, red
        self.rotated(old, new)

    def insert(self, node):
        node.left = node.right = None
        node.min_vruntime, node.min_slice, node.red = node.vruntime, node.slice, True
        parent, below = None, self.root
        while below:
            parent, side = below, "left" if node.deadline < below.deadline else "right"
            below = getattr(parent, side)
        node.parent = parent
        if parent is None:
            self.root = node
        else:
            setattr(parent, side, node)
            self.propagate(parent)
        while (parent := node.parent) and parent.red:
            above = parent.parent
            side = "left" if above.left is parent else "right"
            uncle = getattr(above, OTHER[side])
            if uncle and uncle.red:
                uncle.red = parent.red = False
                above.red, node = True, above
                continue
            if getattr(parent, OTHER[side]) is node:
                self.rotate(parent, node, OTHER[side], None)
                parent = node
            self.rotate(above, parent, side, True)
            break
        self.root.red = False

    def erase(self, node):
        thin = None  # below it, on one side, a black node is missing
        if node.left and node.right:
            heir, parent = node.right, None
            while heir.left:
                parent, heir = heir, heir.left
            child = heir.right
            heir.min_vruntime = node.min_vruntime  # and not min_slice
            if parent:
                parent.left, heir.right, node.right.parent = child, node.right, heir
                self.propagate(parent, heir)
            else:
                parent = heir
            heir.left, node.left.parent = node.left, heir
            self.replace(node, heir, node.parent)
            if child:
                child.parent, child.red = parent, False
            elif not heir.red:
                thin = parent
            heir.parent, heir.red = node.parent, node.red
            self.propagate(heir)
        else:
            child, parent = node.left or node.right, node.parent
            self.replace(node, child, parent)
            if child:
                child.parent, child.red = parent, node.red
            elif not node.red:
                thin = parent
            self.propagate(parent)
        node = None
        while thin:
            side = "left" if thin.left is node else "right"
            sibling = getattr(thin, OTHER[side])
            if sibling.red:
                self.rotate(thin, sibling, OTHER[side], True)
                sibling = getattr(thin, OTHER[side])
            near, far = getattr(sibling, side), getattr(sibling, OTHER[side])
            if not (near and near.red or far and far.red):
                sibling.red = True
                if thin.red or not thin.parent:
                    thin.red = False
                    break
                node, thin = thin, thin.parent
                continue
            if not (far and far.red):
                self.rotate(sibling, near, side, None)
                sibling, far = near, sibling
            self.rotate(thin, sibling, OTHER[side], False)
            far.red = False
            break


class Queue:
    def __init__(self):
        self.tree, self.nodes, self.waiting, self.states = Tree(), {}, set(), {}
        self.slices, self.weights, self.running, self.until = {}, {}, None, (0, 0)

    def insert(self, task, state):
        node = self.nodes[task]
        node.deadline, node.vruntime, node.slice = state["deadline"], state["vruntime"], self.slices[task]
        self.tree.insert(node)
        self.waiting.add(task)

    def erase(self, task):
        self.tree.erase(self.nodes[task])
        self.waiting.discard(task)

    def protected(self, task, state, shortest):
        until = state["vruntime"] + shortest * 1024 // self.weights[task]
        return state["deadline"] if shortest >= self.slices[task] else min(state["deadline"], until)

    def pick(self, runs, states, line):
        for task in [task for task in self.waiting if task not in states]:
            self.erase(task)
        if runs != self.running:
            if self.running in states and self.running not in self.waiting:
                self.insert(self.running, states[self.running])
            if runs:
                self.erase(runs)
                root = self.tree.root
                held = min([self.slices[runs]] + ([root.min_slice] if root else []))
                true = min(self.slices[task] for task in states)
                self.until = [self.protected(runs, states[runs], least) for least in (held, true)]
                if held != true:
                    print(f"line {line}: the shortest request is {true}; at the root it is {held}")
        self.running = runs or None


def main():
    lines = [json.loads(line) for line in open(sys.argv[1])]
    name, queue, ticks, wrong = lines[0]["name"], Queue(), 0, 0
    for line, event in enumerate(lines[1:], 2):
        op, task, then = event["op"], event.get("task"), event.get("then", {})
        states = {state["task"]: state for state in then.get("tasks", [])}
        if op == "task":
            queue.nodes[task], queue.slices[task], queue.weights[task] = Node(), event["slice"], event["weight"]
        elif op in ("wake", "new") and task not in queue.states:
            queue.insert(task, states[task])
        elif op in ("wake", "new") and states[task]["vruntime"] != queue.states[task]["vruntime"]:
            queue.erase(task)
            queue.insert(task, states[task])
        elif op in ("slice", "weight"):
            (queue.slices if op == "slice" else queue.weights)[task] = event[op]
            if task in queue.waiting:
                queue.erase(task)
                queue.insert(task, states[task])
            elif task == queue.running:
                queue.insert(task, states[task])
                queue.erase(task)
        elif op == "pick":
            queue.pick(then["runs"], states, line)
        elif op == "tick" and queue.running in states and len(states) > 1:
            wanted = then.get("resched")
            if wanted is not None:
                ticks += 1
                now, before = states[queue.running], queue.states[queue.running]
                is_due = now["deadline"] != before["deadline"]
                held, true = (is_due or now["vruntime"] >= until for until in queue.until)
                wrong += held != wanted
                if (held, true) != (wanted, wanted):
                    print(f"line {line}: a pick? the kernel {wanted}, by the root {held}, by the shortest {true}")
        if op not in ("reset", "task"):
            queue.states = states
    print(f"{name}: {ticks} ticks, {wrong} not explained by the tree")
    return 4 if wrong else 0


sys.exit(main())
