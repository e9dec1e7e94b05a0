/* The protocol of conformance/README.md for a subject in C: reads events on stdin, answers on stdout. A subject includes this file once and defines the three
 * functions of the first part. Times and virtual times are in nanoseconds, virtual ones of nice 0 (weight 1024). */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEER_TASKS 4096 /* tasks are 1 to PEER_TASKS; 0 is the idle CPU */
#define PEER_LINE 4096

struct peer_event {
    char op[16];
    int64_t at, task, weight, slice, vruntime, lag, tick;
};

/* What the subject says of an event; -1 says nothing. */
struct peer_answer {
    int64_t runs, resched;
    bool states; /* whether the tasks' states are those of this moment */
};

struct peer_state {
    int64_t vruntime, deadline, lag;
    bool has_deadline, has_lag, eligible; /* lag and eligible go together */
};

/* Does what the event says; NULL, or a sentence why it cannot. */
static const char *peer_do(const struct peer_event *event, struct peer_answer *answer);
/* The state of a task; false if it is not in the queue. */
static bool peer_state(int64_t task, struct peer_state *state);

static jmp_buf peer_stopped;
static char peer_reason[512];

/* Ends the event with an error: the scheduler itself gave up. */
static _Noreturn void peer_stop(const char *reason)
{
    snprintf(peer_reason, sizeof peer_reason, "%s", reason);
    longjmp(peer_stopped, 1);
}

static void peer_skip(const char **text)
{
    while (**text == ' ' || **text == '\t')
        ++*text;
}

/* Reads a flat object of integers and words; NULL, or what is wrong. */
static const char *peer_parse(const char *text, struct peer_event *event)
{
    memset(event, 0, sizeof *event);
    struct { const char *name; int64_t *value; } members[] = {
        {"at", &event->at}, {"task", &event->task}, {"weight", &event->weight}, {"slice", &event->slice}, {"vruntime", &event->vruntime}, {"lag", &event->lag}, {"tick", &event->tick},
    };
    peer_skip(&text);
    if (*text++ != '{')
        return "an event is an object: {\\\"at\\\":0,\\\"op\\\":\\\"tick\\\"}";
    for (;;) {
        char name[16], word[16];
        int length = 0;
        peer_skip(&text);
        if (sscanf(text, "\"%15[a-z]\"%n", name, &length) != 1 || length == 0)
            return "a member's name is missing or unknown";
        text += length;
        peer_skip(&text);
        if (*text++ != ':')
            return "a colon is missing";
        peer_skip(&text);
        length = 0;
        if (strcmp(name, "op") == 0) {
            if (sscanf(text, "\"%15[a-z]\"%n", word, &length) != 1 || length == 0)
                return "op is not a word";
            strcpy(event->op, word);
            text += length;
        } else {
            char *end;
            size_t i = 0;
            while (i < sizeof members / sizeof *members && strcmp(name, members[i].name) != 0)
                i++;
            if (i == sizeof members / sizeof *members)
                return "an event has an unknown member";
            *members[i].value = strtoll(text, &end, 10);
            if (end == text)
                return "a member is not an integer";
            text = end;
        }
        peer_skip(&text);
        if (*text == '}')
            break;
        if (*text++ != ',')
            return "a comma is missing";
    }
    if (event->op[0] == 0)
        return "an event has no op";
    if (event->at < 0 || event->at > INT64_MAX / 64)
        return "the time is out of range";
    if (event->task < 0 || event->task > PEER_TASKS)
        return "the task's number is out of range: 1 to 4096";
    return NULL;
}

static void peer_write(const struct peer_answer *answer)
{
    const char *comma = "";
    putchar('{');
    if (answer->runs >= 0)
        printf("\"runs\":%lld", (long long)answer->runs), comma = ",";
    if (answer->resched >= 0)
        printf("%s\"resched\":%s", comma, answer->resched ? "true" : "false"), comma = ",";
    if (answer->states) {
        const char *between = "";
        printf("%s\"tasks\":[", comma);
        for (int64_t task = 1; task <= PEER_TASKS; task++) {
            struct peer_state state = {0};
            if (!peer_state(task, &state))
                continue;
            printf("%s{\"task\":%lld,\"vruntime\":%lld", between, (long long)task, (long long)state.vruntime);
            if (state.has_deadline)
                printf(",\"deadline\":%lld", (long long)state.deadline);
            if (state.has_lag)
                printf(",\"lag\":%lld,\"eligible\":%s", (long long)state.lag, state.eligible ? "true" : "false");
            putchar('}');
            between = ",";
        }
        putchar(']');
    }
    puts("}");
}

int main(void)
{
    static char line[PEER_LINE];
    static const char *volatile refused = "the first event is not reset";
    while (fgets(line, sizeof line, stdin)) {
        struct peer_event event;
        struct peer_answer answer = {.runs = -1, .resched = -1};
        const char *wrong = strchr(line, '\n') == NULL && !feof(stdin) ? "a line is too long" : peer_parse(line, &event);
        while (strchr(line, '\n') == NULL && fgets(line, sizeof line, stdin))
            ;
        if (wrong)
            refused = wrong;
        else if (strcmp(event.op, "reset") == 0)
            refused = NULL;
        /* After an error the state means nothing until the next reset. */
        if (refused == NULL)
            refused = setjmp(peer_stopped) ? peer_reason : peer_do(&event, &answer);
        if (refused)
            printf("{\"error\":\"%s\"}\n", refused);
        else
            peer_write(&answer);
        fflush(stdout);
    }
    return 0;
}
