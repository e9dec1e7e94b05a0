/* SPDX-License-Identifier: GPL-2.0 */
/* What both sides of the bridge share; src/bridge/memory.rs has the same layout. */
#ifndef SCHEDLAB_BRIDGE_H
#define SCHEDLAB_BRIDGE_H

#define EVENTS 16384
#define DECISIONS 4096
#define DRAINED_AT_ONCE 64

enum event_kind {
	EVENT_ENABLE = 1,	/* the task belongs to this scheduler; flags: its policy, value: static_prio */
	EVENT_DISABLE,		/* no longer: it ends, or changes its class */
	EVENT_RUNNABLE,		/* it is runnable; value: the CPU that reports it */
	EVENT_ENQUEUE,		/* it waits for a decision; value: the number of this wait */
	EVENT_DEQUEUE,		/* it no longer waits */
	EVENT_RUNNING,		/* it runs on cpu */
	EVENT_STOPPING,		/* it stops, see the flags */
	EVENT_QUIESCENT,	/* it is no longer runnable */
	EVENT_TICK,		/* it runs, and the kernel's tick came */
	EVENT_WEIGHT,		/* as EVENT_ENABLE, of an enabled task */
	EVENT_CPUMASK,		/* value: the CPUs that it may use */
	EVENT_EXIT,		/* it is gone, and so is its process id */
	EVENT_CPU_ONLINE,	/* of cpu, and no task, as all below */
	EVENT_CPU_OFFLINE,
	EVENT_CPU_ACQUIRE,	/* no higher class runs there any more */
	EVENT_CPU_RELEASE,	/* a higher class runs there */
};

enum event_flag {
	FLAG_WOKEN = 1,		/* after a sleep */
	FLAG_RUNNABLE = 2,	/* it is still runnable, and is enqueued next */
	FLAG_YIELDED = 4,	/* it called sched_yield */
	FLAG_EXCURSION = 8,	/* only for the program */
	FLAG_KEPT = 16,		/* for another class; the kernel continues it by itself */
	FLAG_DEAD = 32,		/* it has ended */
	FLAG_SLEEPS = 64,	/* to sleep, not to change its attributes */
};

enum decision_kind {
	DECISION_RUN = 1,
	DECISION_STOP,
};

struct event {
	unsigned long long sequence;	/* its number + 1, once it is written */
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
