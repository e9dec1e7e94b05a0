/* Reads the flat lines of format 1, calls the table, and answers. */
#include "vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_TIME INT64_C(4611686018427387903)

/* Reads exactly these bytes. */
static int text(const char **at, const char *what)
{
	size_t length = strlen(what);

	if (strncmp(*at, what, length) != 0)
		return 0;
	*at += length;
	return 1;
}

/* Reads a number from least to most. */
static int number(const char **at, int64_t least, int64_t most, int64_t *value)
{
	int is_negative = text(at, "-");
	uint64_t digits = 0;
	const char *first;

	for (first = *at; **at >= '0' && **at <= '9'; ++*at) {
		if (*at - first == 19)
			return 0;
		digits = digits * 10 + (uint64_t)(**at - '0');
	}
	if (*at == first || (*first == '0' && *at - first > 1) || digits > (uint64_t)MOST_TIME)
		return 0;
	*value = is_negative ? -(int64_t)digits : (int64_t)digits;
	return *value >= least && *value <= most;
}

/* Reads ,"name":number. */
static int member(const char **at, const char *name, int64_t least, int64_t most, int64_t *value)
{
	return text(at, ",\"") && text(at, name) && text(at, "\":") && number(at, least, most, value);
}

static int task_of(const char **at, int64_t *task)
{
	return member(at, "task", 1, VECTORS_TASKS, task);
}

static int weight_of(const char **at, int64_t *weight)
{
	return member(at, "weight", 1, INT64_C(1) << 24, weight);
}

static int span_of(const char **at, const char *name, int64_t *span)
{
	return member(at, name, 1, INT64_C(1000000000000), span);
}

static int is_end(const char *at)
{
	return strcmp(at, "}") == 0;
}

static int refuse(const char *why, const char *what)
{
	printf("{\"error\":\"%s%s\"}\n", why, what);
	return 1;
}

/* Ends an answer with what the scheduler states about each task up to last. */
static int states(const struct vectors_scheduler *to, int last, int is_first)
{
	const char *before = is_first ? "\"tasks\":[" : ",\"tasks\":[";
	int task, any = 0;

	for (task = 1; to->state && task <= last; task++) {
		struct vectors_state state = {0, 0, 0, 0, 0};

		if (!to->state(to->self, task, &state) || !state.stated)
			continue;
		printf("%s{\"task\":%d", before, task);
		if (state.stated & VECTORS_VRUNTIME)
			printf(",\"vruntime\":%" PRId64, state.vruntime);
		if (state.stated & VECTORS_DEADLINE)
			printf(",\"deadline\":%" PRId64, state.deadline);
		if (state.stated & VECTORS_LAG)
			printf(",\"lag\":%" PRId64, state.lag);
		if (state.stated & VECTORS_ELIGIBLE)
			printf(",\"eligible\":%s", state.eligible ? "true" : "false");
		putchar('}');
		before = ",";
		any = 1;
	}
	fputs(any ? "]}\n" : "}\n", stdout);
	return 1;
}

/* resched is -1 where there is none. */
static int answer(const struct vectors_scheduler *to, int last, int resched)
{
	putchar('{');
	if (resched >= 0)
		printf("\"resched\":%s", resched ? "true" : "false");
	return states(to, last, resched < 0);
}

/* Handles one line. 0 if it is no event of format 1. */
static int event(const struct vectors_scheduler *to, const char *at, int *last)
{
	int64_t time, task, weight, slice, other, lag;
	void *self = to->self;

	if (!text(&at, "{\"at\":") || !number(&at, 0, MOST_TIME, &time) ||
	    !text(&at, ",\"op\":\""))
		return 0;
	if (text(&at, "reset\"")) {
		if (!span_of(&at, "tick", &other) || !span_of(&at, "slice", &slice) || !is_end(at))
			return 0;
		if (!to->reset)
			return refuse("struct vectors_scheduler has no callback for ", "reset");
		*last = 0;
		to->reset(self, time, other, slice);
		return answer(to, *last, -1);
	}
	if (text(&at, "task\"")) {
		if (!task_of(&at, &task) || !weight_of(&at, &weight) || !span_of(&at, "slice", &slice) ||
		    !member(&at, "vruntime", -MOST_TIME, MOST_TIME, &other) ||
		    !member(&at, "lag", -MOST_TIME, MOST_TIME, &lag) || !is_end(at))
			return 0;
		if (!to->task)
			return refuse("struct vectors_scheduler has no callback for ", "task");
		*last = task > *last ? (int)task : *last;
		to->task(self, time, (int)task, (int32_t)weight, slice, other, lag);
		return answer(to, *last, -1);
	}
	if (text(&at, "wake\"")) {
		if (!task_of(&at, &task) || !is_end(at))
			return 0;
		return to->wake ? answer(to, *last, to->wake(self, time, (int)task))
				: refuse("struct vectors_scheduler has no callback for ", "wake");
	}
	if (text(&at, "new\"")) {
		if (!task_of(&at, &task) || !is_end(at))
			return 0;
		return to->new_task ? answer(to, *last, to->new_task(self, time, (int)task))
				    : refuse("struct vectors_scheduler has no callback for ", "new");
	}
	if (text(&at, "weight\"")) {
		if (!task_of(&at, &task) || !weight_of(&at, &weight) || !is_end(at))
			return 0;
		return to->weight ? answer(to, *last,
					   to->weight(self, time, (int)task, (int32_t)weight))
				  : refuse("struct vectors_scheduler has no callback for ", "weight");
	}
	if (text(&at, "slice\"")) {
		if (!task_of(&at, &task) || !span_of(&at, "slice", &slice) || !is_end(at))
			return 0;
		return to->slice ? answer(to, *last, to->slice(self, time, (int)task, slice))
				 : refuse("struct vectors_scheduler has no callback for ", "slice");
	}
	if (text(&at, "tick\"") && is_end(at))
		return to->tick ? answer(to, *last, to->tick(self, time))
				: refuse("struct vectors_scheduler has no callback for ", "tick");
	if (text(&at, "pick\"") && is_end(at)) {
		if (!to->pick)
			return refuse("struct vectors_scheduler has no callback for ", "pick");
		printf("{\"runs\":%d", to->pick(self, time));
		return states(to, *last, 0);
	}
	{
		void (*call)(void *, int64_t) = NULL;
		const char *name = text(&at, "block\"")   ? "block"
				   : text(&at, "exit\"")  ? "exit"
				   : text(&at, "yield\"") ? "yield"
							  : NULL;

		if (!name || !is_end(at))
			return 0;
		call = *name == 'b' ? to->block : *name == 'e' ? to->exit : to->yield;
		if (!call)
			return refuse("struct vectors_scheduler has no callback for ", name);
		call(self, time);
		return answer(to, *last, -1);
	}
}

/* Reads a line. One that is too long or has a zero byte becomes empty, which is no event. */
static int read_line(char *line, size_t size)
{
	size_t length = 0;
	int byte, is_bad = 0;

	while ((byte = getchar()) != EOF && byte != '\n') {
		is_bad |= byte == 0 || length + 1 == size;
		if (!is_bad)
			line[length++] = (char)byte;
	}
	line[is_bad ? 0 : length] = 0;
	return byte != EOF || length > 0 || is_bad;
}

int vectors_main(const struct vectors_scheduler *scheduler)
{
	char line[512];
	int last = 0;

	while (read_line(line, sizeof line)) {
		if (!event(scheduler, line, &last))
			refuse("this line is no event of format 1", "");
		if (fflush(stdout) != 0)
			return 1;
	}
	return ferror(stdin) ? 1 : 0;
}
