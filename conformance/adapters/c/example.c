/* Fair queueing without lag or deadlines: who had the least CPU time for its weight runs, until a
 * tick at which another had less. A sleeper comes back with no less than those present. */
#include "vectors.h"

static struct task {
	int is_ready;
	int32_t weight;
	int64_t vruntime;
} tasks[VECTORS_TASKS + 1];
static int running, last;
static int64_t charged;

static int least(void)
{
	int best = 0;
	for (int i = 1; i <= last; i++)
		if (tasks[i].is_ready && (!best || tasks[i].vruntime < tasks[best].vruntime))
			best = i;
	return best;
}

static void charge(void *self, int64_t at)
{
	(void)self;
	if (running)
		tasks[running].vruntime += (at - charged) * 1024 / tasks[running].weight;
	charged = at;
}

static void reset(void *self, int64_t at, int64_t tick, int64_t slice)
{
	(void)self, (void)tick, (void)slice;
	last = running = 0;
	charged = at;
}

static void task(void *self, int64_t at, int i, int32_t weight, int64_t slice, int64_t vruntime,
		 int64_t lag)
{
	(void)self, (void)at, (void)slice, (void)vruntime, (void)lag;
	for (; last < i; tasks[last].is_ready = 0)
		last++;
	tasks[i] = (struct task){0, weight, 0};
}

static int wake(void *self, int64_t at, int i)
{
	charge(self, at);
	if (least() && tasks[i].vruntime < tasks[least()].vruntime)
		tasks[i].vruntime = tasks[least()].vruntime;
	return tasks[i].is_ready = 1, !running;
}

static int tick(void *self, int64_t at)
{
	return charge(self, at), least() != running;
}

static void leave(void *self, int64_t at)
{
	charge(self, at);
	running = tasks[running].is_ready = 0;
}

static int pick(void *self, int64_t at)
{
	return charge(self, at), running = least();
}

static int state(void *self, int i, struct vectors_state *state)
{
	(void)self, state->stated = VECTORS_VRUNTIME, state->vruntime = tasks[i].vruntime;
	return tasks[i].is_ready;
}

int main(void)
{
	return vectors_main(&(struct vectors_scheduler){
		.reset = reset, .task = task, .wake = wake, .new_task = wake, .tick = tick,
		.block = leave, .exit = leave, .yield = charge, .pick = pick, .state = state});
}
