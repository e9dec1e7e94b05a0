/* SPDX-License-Identifier: GPL-2.0 */
/* What the bridge's two sides share; src/bridge/memory.rs is the other description of it. */
#ifndef SCHEDLAB_BRIDGE_H
#define SCHEDLAB_BRIDGE_H

#define EVENTS 16384
#define DECISIONS 4096
#define DRAINED_AT_ONCE 64

enum event_kind {
	EVENT_ENABLE = 1,	/* the task is ours from now on; flags: its policy, value: static_prio */
	EVENT_DISABLE,		/* it is not any more: it ended, or asked for another class */
	EVENT_RUNNABLE,		/* it wants to run; value: the CPU that says so */
	EVENT_ENQUEUE,		/* it waits for a decision; value: which wait of its life this is */
	EVENT_DEQUEUE,		/* it does not wait any more */
	EVENT_RUNNING,		/* it runs on cpu */
	EVENT_STOPPING,		/* it stops, see the flags */
	EVENT_QUIESCENT,	/* it does not want to run any more */
	EVENT_TICK,		/* it runs, and the kernel's tick came */
	EVENT_WEIGHT,		/* as EVENT_ENABLE, of a task that is ours */
	EVENT_CPUMASK,		/* value: where it may run */
};

enum event_flag {
	FLAG_WOKEN = 1,		/* after a sleep */
	FLAG_RUNNABLE = 2,	/* it still wants to run, and is enqueued next */
	FLAG_YIELDED = 4,	/* it called sched_yield */
	FLAG_EXCURSION = 8,	/* only so that the program can run */
	FLAG_KEPT = 16,		/* by another class: the kernel goes on with it by itself */
	FLAG_DEAD = 32,		/* for ever */
	FLAG_SLEEPS = 64,	/* to sleep, not to have its attributes changed */
};

enum decision_kind {
	DECISION_RUN = 1,
	DECISION_STOP,
};

struct event {
	unsigned long long sequence;	/* one more than its number, once it is written */
	unsigned long long ns;
	unsigned long long value;
	unsigned int pid;
	unsigned short cpu;
	unsigned char kind;
	unsigned char flags;
};

struct decision {
	unsigned long long slice;
	unsigned long long wait;	/* the value of the EVENT_ENQUEUE that it answers */
	unsigned int pid;
	unsigned short cpu;
	unsigned short kind;
};

struct shared {
	unsigned long long event_head;		/* written by the kernel's side */
	unsigned long long decision_tail;
	unsigned long long exited;
	unsigned long long unused[5];
	unsigned long long event_tail;		/* written by the program */
	unsigned long long decision_head;
	unsigned long long unused_too[6];
	struct event events[EVENTS];
	struct decision decisions[DECISIONS];
};

#endif
