#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* An operation of a task: what it is, the numbers of its objects, and an amount. */
enum what {
    YIELD, RUN, SLEEP, TIMER, LOCK, UNLOCK, WAIT, SIGNAL, BARRIER, WRITE, READ, SEND, RECEIVE, POST, TAKE, SERVE, POLL, WATCH, IO, FORK, JOIN,
    COUNTED,
    BROADCAST, UNTIL, HANDLE, GOTO, REPEAT, END
};
static const char *const words[COUNTED] = {
    "yield", "run", "sleep", "timer", "lock", "unlock", "wait", "signal", "barrier", "write", "read", "send", "receive", "post", "take", "serve", "poll", "watch", "io", "fork", "join"
};
struct op { int what, a, c; long long b; };

/* A timer: `c` of TIMER. */
enum { OWN_RELATIVE, OWN_ABSOLUTE, SHARED_RELATIVE, SHARED_ABSOLUTE };

/* A kind of task; `count` are there at the begin, or can be forked. Times in nanoseconds. */
struct kind {
    const char *name;
    const struct op *ops;
    int count, policy, nice, priority;
    long long slice, runtime, deadline, period, start;
    const int *cpus; /* ends with -1 */
    int forked, process, daemon;
};

/* An object in a set: data or room. */
enum { OF_PIPE, OF_PIPE_ROOM, OF_SOCKET, OF_ROOM, OF_EVENTFD };
struct source { int object, number, side; unsigned flags; int drained, off; };
struct set { const struct source *sources; int count, most; };
/* A wait for a set: where the handler of each object begins, and ends if each round differs. */
struct serve { int set, count, begin, after; const int *handlers, *ends; int cursors, number; };
struct counter { unsigned count; int semaphore, wakes_one; };

/*TABLES*/

#define AT_LEAST_ONE(n) ((n) > 0 ? (n) : 1)

static struct shared {
    pthread_mutex_t mutexes[AT_LEAST_ONE(MUTEXES)];
    pthread_cond_t conditions[AT_LEAST_ONE(CONDITIONS)];
    pthread_barrier_t barriers[AT_LEAST_ONE(BARRIERS)];
    sem_t semaphores[AT_LEAST_ONE(EVENTFDS)], devices[AT_LEAST_ONE(DEVICES)];
    _Atomic long long timers[AT_LEAST_ONE(SHARED_TIMERS)];
    /* Under `lock`: how many tasks there are, and what is over. */
    pthread_mutex_t lock;
    pthread_cond_t changed, opened, ended[KINDS]; /* for main; that tasks may begin; by kind: that none is alive */
    int ready, is_open, alive[KINDS], begun[KINDS];
    long remaining;
    pid_t processes[INSTANCES];
    int process_count;
    long long begin;
    _Atomic unsigned long long counts[COUNTED];
    _Atomic int refused;
} *shared;

static int pipes[AT_LEAST_ONE(PIPES)][2], sockets[AT_LEAST_ONE(SOCKETS)][2], eventfds[AT_LEAST_ONE(EVENTFDS)];
static int epolls[AT_LEAST_ONE(SETS)], descriptors[AT_LEAST_ONE(SOURCES)], first_source[AT_LEAST_ONE(SETS)];

static void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static long long now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void sleep_until(long long at)
{
    struct timespec time = { at / 1000000000, at % 1000000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {}
}

/* The CPU time that the task's runs have up to here, and the one that it was last seen to have used. */
static __thread long long due, used;

/* Uses CPU time. What the calls before it took is a part of it; if they took more, the next runs are shorter. */
static void run(long long span)
{
    due += span;
    while (used < due)
        used = now(CLOCK_THREAD_CPUTIME_ID);
}

/* Locks a mutex, or spins for it as long as it says, and then sleeps and spins again, or waits. */
static void lock(int number)
{
    pthread_mutex_t *mutex = &shared->mutexes[number];
    long long limit = spins[number][0], pause = spins[number][1], begin = now(CLOCK_THREAD_CPUTIME_ID);
    while (limit > 0 && pthread_mutex_trylock(mutex) != 0) {
        used = now(CLOCK_THREAD_CPUTIME_ID);
        if (used - begin < limit)
            continue;
        due += used - begin;
        if (pause == 0) {
            pthread_mutex_lock(mutex);
            return;
        }
        sleep_until(now(CLOCK_MONOTONIC) + pause);
        begin = used = now(CLOCK_THREAD_CPUTIME_ID);
    }
    if (limit > 0)
        due += now(CLOCK_THREAD_CPUTIME_ID) - begin;
    else
        pthread_mutex_lock(mutex);
}

/* Sleeps until the next period begins; returns when that was due. */
static long long next_period(long long last, long long period, int is_absolute)
{
    long long next = last + period, time = now(CLOCK_MONOTONIC);
    if (next > time)
        sleep_until(next);
    else if (!is_absolute)
        next = time;
    return next;
}

static void write_all(int to, const char *bytes, long long count)
{
    while (count > 0) {
        ssize_t done = write(to, bytes, count);
        if (done < 0 && errno != EINTR)
            fail("write");
        count -= done > 0 ? done : 0;
    }
}

static void read_bytes(int from, char *bytes, long long count, int is_partial)
{
    while (count > 0) {
        ssize_t done = read(from, bytes, count);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            fail("read");
        if (is_partial)
            return;
        count -= done;
    }
}

static void take_semaphore(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR) {}
}

static void *memory(size_t bytes)
{
    void *place = mmap(NULL, bytes > 0 ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        fail("mmap");
    return place;
}

/* Asks for the policy, nice value, slice, reservation and CPUs of a kind. */
static void adopt(const struct kind *kind)
{
    struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline, period; } attributes = {
        sizeof attributes, kind->policy, 0, kind->nice, kind->priority, kind->period > 0 ? kind->runtime : kind->slice, kind->deadline, kind->period
    };
    if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0)
        atomic_fetch_add(&shared->refused, 1);
    if (kind->cpus) {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (const int *cpu = kind->cpus; *cpu >= 0; cpu++)
            CPU_SET(*cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0)
            atomic_fetch_add(&shared->refused, 1);
    }
}

/* What a task has done of its waits for sets. */
struct waits {
    int *cursors, *is_begun;   /* by object of a wait; by wait */
    char *draining;            /* by object of a set */
    int *returned, count, next, handling;
    struct epoll_event *events;
    struct pollfd *polled;
};

static void watch(int set, int place, int is_on)
{
    const struct source *source = &sets[set].sources[place];
    struct epoll_event event = { is_on ? source->flags : 0, { .u64 = place } };
    if (epoll_ctl(epolls[set], EPOLL_CTL_MOD, descriptors[first_source[set] + place], &event) != 0)
        fail("epoll_ctl");
}

/* Waits for a set; returns the op at which the task continues, or -1 for the next. */
static int serve(struct waits *waits, const struct serve *serve)
{
    const struct set *set = &sets[serve->set];
    char *draining = waits->draining + first_source[serve->set];
    int *cursors = waits->cursors + serve->cursors;
    for (int place = 0; place < set->count; place++)
        if (draining[place]) {
            draining[place] = 0;
            watch(serve->set, place, 1);
        }
    if (serve->ends) {
        int is_done = 1, is_new = !waits->is_begun[serve->number];
        if (is_new)
            memcpy(cursors, serve->handlers, serve->count * sizeof *cursors);
        waits->is_begun[serve->number] = 1;
        for (int place = 0; place < serve->count; place++) {
            if (is_new && cursors[place] == serve->ends[place])
                watch(serve->set, place, 0);
            is_done &= cursors[place] == serve->ends[place];
        }
        if (is_done) {
            waits->is_begun[serve->number] = 0;
            for (int place = 0; place < set->count; place++)
                if (!set->sources[place].off && !(set->sources[place].flags & EPOLLONESHOT))
                    watch(serve->set, place, 1);
            return serve->after;
        }
    }
    struct epoll_event *events = waits->events;
    while ((waits->count = epoll_wait(epolls[serve->set], events, set->most, -1)) < 0)
        if (errno != EINTR)
            fail("epoll_wait");
    for (int i = 0; i < waits->count; i++) {
        waits->returned[i] = events[i].data.u64;
        draining[events[i].data.u64] = set->sources[events[i].data.u64].drained;
    }
    waits->next = 0;
    return -1;
}

/* The op of the handler of the next object, or behind all, if the op before `at` ends a handler. */
static int handle(struct waits *waits, const struct serve *serve, int at)
{
    int *cursors = waits->cursors + serve->cursors;
    if (!serve->ends)
        return waits->next < waits->count ? serve->handlers[waits->returned[waits->next++]] : serve->after;
    if (waits->handling >= 0) {
        int last = waits->handling;
        cursors[last] = at;
        if (at == serve->ends[last])
            watch(serve->set, last, 0);
    }
    waits->handling = -1;
    while (waits->next < waits->count) {
        int place = waits->returned[waits->next++];
        if (cursors[place] != serve->ends[place]) {
            waits->handling = place;
            return cursors[place];
        }
    }
    return serve->begin;
}

static void poll_set(struct pollfd *entries, int number)
{
    const struct set *set = &sets[number];
    for (int i = 0; i < set->count; i++) {
        int is_room = set->sources[i].flags & EPOLLOUT;
        entries[i] = (struct pollfd){ descriptors[first_source[number] + i], is_room ? POLLOUT : POLLIN, 0 };
    }
    while (poll(entries, set->count, -1) < 0)
        if (errno != EINTR)
            fail("poll");
}

static void begin_task(int number, int is_forked);

static void fork_task(int number)
{
    const struct kind *kind = &kinds[number];
    pthread_mutex_lock(&shared->lock);
    if (shared->begun[number]++ >= kind->count) {
        errno = EAGAIN;
        fail(kind->name);
    }
    shared->alive[number]++;
    shared->remaining += !kind->daemon;
    pthread_mutex_unlock(&shared->lock);
    begin_task(number, 1);
}

static void join_task(int number)
{
    pthread_mutex_lock(&shared->lock);
    while (shared->alive[number] > 0)
        pthread_cond_wait(&shared->ended[number], &shared->lock);
    pthread_mutex_unlock(&shared->lock);
}

/* What a task does. */
static void perform(const struct kind *kind, long long begin, int is_forked)
{
    unsigned long long passes[DEPTH + 1] = { 0 };
    long long timers[TIMERS + 1];
    struct waits waits = { .handling = -1 };
    char *buffer = memory(LARGEST);
    if (SETS > 0) {
        waits.cursors = memory(CURSORS * sizeof(int));
        waits.is_begun = memory(SERVES * sizeof(int));
        waits.draining = memory(SOURCES);
        waits.returned = memory(MOST_EVENTS * sizeof(int));
        waits.events = memory(MOST_EVENTS * sizeof *waits.events);
        waits.polled = memory(MOST_SOURCES * sizeof *waits.polled);
    }
    for (int i = 0; i <= TIMERS; i++)
        timers[i] = begin;
    used = now(CLOCK_THREAD_CPUTIME_ID);
    due = is_forked ? 0 : used; /* what a forked task took to begin is a part of its first run */
    for (int at = 0;;) {
        const struct op *op = &kind->ops[at++];
        uint64_t count;
        switch (op->what) {
        case YIELD: sched_yield(); break;
        case RUN: run(op->b); break;
        case SLEEP: sleep_until(now(CLOCK_MONOTONIC) + op->b); break;
        case UNTIL: sleep_until(shared->begin + op->b); break;
        case TIMER:
            if (op->c == OWN_RELATIVE || op->c == OWN_ABSOLUTE) {
                timers[op->a] = next_period(timers[op->a], op->b, op->c == OWN_ABSOLUTE);
            } else {
                long long last = shared->timers[op->a] > shared->begin ? shared->timers[op->a] : shared->begin;
                shared->timers[op->a] = next_period(last, op->b, op->c == SHARED_ABSOLUTE);
            }
            break;
        case LOCK: lock(op->a); break;
        case UNLOCK: pthread_mutex_unlock(&shared->mutexes[op->a]); break;
        case WAIT: pthread_cond_wait(&shared->conditions[op->a], &shared->mutexes[op->c]); break;
        case SIGNAL: pthread_cond_signal(&shared->conditions[op->a]); break;
        case BROADCAST: pthread_cond_broadcast(&shared->conditions[op->a]); break;
        case BARRIER: pthread_barrier_wait(&shared->barriers[op->a]); break;
        case WRITE: write_all(pipes[op->a][1], buffer, op->b); break;
        case READ: read_bytes(pipes[op->a][0], buffer, op->b, op->c); break;
        case SEND: write_all(sockets[op->a][op->c], buffer, op->b); break;
        case RECEIVE: read_bytes(sockets[op->a][op->c & 1], buffer, op->b, op->c & 2); break;
        case POST:
            if (counters[op->a].wakes_one) {
                for (long long i = 0; i < op->b; i++)
                    sem_post(&shared->semaphores[op->a]);
            } else {
                count = op->b;
                write_all(eventfds[op->a], (char *)&count, sizeof count);
            }
            break;
        case TAKE:
            if (counters[op->a].wakes_one)
                take_semaphore(&shared->semaphores[op->a]);
            else
                read_bytes(eventfds[op->a], (char *)&count, sizeof count, 0);
            break;
        case SERVE: {
            int to = serve(&waits, &serves[op->a]);
            at = to < 0 ? at : to;
            break;
        }
        case HANDLE: at = handle(&waits, &serves[op->a], at); break;
        case POLL: poll_set(waits.polled, op->a); break;
        case WATCH: watch(op->a, op->c, op->b); break;
        case IO:
            take_semaphore(&shared->devices[op->a]);
            sleep_until(now(CLOCK_MONOTONIC) + op->b);
            sem_post(&shared->devices[op->a]);
            break;
        case FORK: fork_task(op->a); break;
        case JOIN: join_task(op->a); break;
        case GOTO: at = op->b; break;
        case REPEAT:
            if (op->b < 0 || ++passes[op->c] < (unsigned long long)op->b)
                at = op->a;
            else
                passes[op->c] = 0;
            break;
        case END:
            munmap(buffer, LARGEST);
            return;
        }
        int kept = op->what == BROADCAST ? SIGNAL : op->what == UNTIL ? SLEEP : op->what;
        if (kept < COUNTED)
            atomic_fetch_add_explicit(&shared->counts[kept], 1, memory_order_relaxed);
    }
}

static void task(int number, int is_forked)
{
    const struct kind *kind = &kinds[number];
    prctl(PR_SET_NAME, kind->name);
    adopt(kind);
    if (!is_forked) {
        pthread_mutex_lock(&shared->lock);
        shared->ready++;
        pthread_cond_signal(&shared->changed);
        while (!shared->is_open)
            pthread_cond_wait(&shared->opened, &shared->lock);
        pthread_mutex_unlock(&shared->lock);
        if (kind->start > 0)
            sleep_until(shared->begin + kind->start);
    }
    perform(kind, is_forked ? now(CLOCK_MONOTONIC) : shared->begin + kind->start, is_forked);
    pthread_mutex_lock(&shared->lock);
    if (--shared->alive[number] == 0)
        pthread_cond_broadcast(&shared->ended[number]);
    shared->remaining -= !kind->daemon;
    if (shared->remaining == 0)
        pthread_cond_signal(&shared->changed);
    pthread_mutex_unlock(&shared->lock);
}

static void *thread(void *argument)
{
    intptr_t number = (intptr_t)argument;
    task(number / 2, number % 2);
    return NULL;
}

static void begin_task(int number, int is_forked)
{
    if (kinds[number].process) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            task(number, is_forked);
            syscall(SYS_exit, 0); /* the process lasts as long as threads that it began; pthread_exit would load a library first */
        }
        pthread_mutex_lock(&shared->lock);
        shared->processes[shared->process_count++] = child;
        pthread_mutex_unlock(&shared->lock);
        return;
    }
    pthread_attr_t attributes;
    pthread_t made;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    errno = pthread_create(&made, &attributes, thread, (void *)(intptr_t)(2 * number + is_forked));
    if (errno != 0)
        fail("pthread_create");
    pthread_attr_destroy(&attributes);
}

static void make_objects(void)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    pthread_barrierattr_t barrier;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
    pthread_barrierattr_init(&barrier);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->lock, &mutex);
    pthread_cond_init(&shared->changed, &condition);
    pthread_cond_init(&shared->opened, &condition);
    for (int i = 0; i < KINDS; i++)
        pthread_cond_init(&shared->ended[i], &condition);
    for (int i = 0; i < MUTEXES; i++) {
        pthread_mutexattr_setprotocol(&mutex, inherits[i] ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
        pthread_mutex_init(&shared->mutexes[i], &mutex);
    }
    for (int i = 0; i < CONDITIONS; i++)
        pthread_cond_init(&shared->conditions[i], &condition);
    for (int i = 0; i < BARRIERS; i++)
        pthread_barrier_init(&shared->barriers[i], &barrier, meets[i]);
    for (int i = 0; i < DEVICES; i++)
        sem_init(&shared->devices[i], 1, channels[i]);
#if PIPES > 0
    for (int i = 0; i < PIPES; i++)
        if (pipe(pipes[i]) != 0 || fcntl(pipes[i][1], F_SETPIPE_SZ, capacities[i]) < 0)
            fail("pipe");
#endif
#if SOCKETS > 0
    for (int i = 0; i < SOCKETS; i++)
        if (socketpair(AF_UNIX, datagrams[i] ? SOCK_DGRAM : SOCK_STREAM, 0, sockets[i]) != 0)
            fail("socketpair");
#endif
    for (int i = 0; i < EVENTFDS; i++) {
        sem_init(&shared->semaphores[i], 1, counters[i].count);
        eventfds[i] = eventfd(counters[i].count, counters[i].semaphore ? EFD_SEMAPHORE : 0);
        if (eventfds[i] < 0)
            fail("eventfd");
    }
    int next = 0;
    for (int i = 0; i < SETS; i++) {
        epolls[i] = epoll_create1(0);
        first_source[i] = next;
        for (int place = 0; place < sets[i].count; place++, next++) {
            const struct source *of = &sets[i].sources[place];
            switch (of->object) {
            case OF_PIPE: descriptors[next] = pipes[of->number][0]; break;
            case OF_PIPE_ROOM: descriptors[next] = pipes[of->number][1]; break;
            case OF_SOCKET: descriptors[next] = sockets[of->number][of->side]; break;
            case OF_ROOM: descriptors[next] = dup(sockets[of->number][of->side]); break;
            case OF_EVENTFD: descriptors[next] = eventfds[of->number]; break;
            }
            struct epoll_event event = { of->off ? 0 : of->flags, { .u64 = place } };
            if (epoll_ctl(epolls[i], EPOLL_CTL_ADD, descriptors[next], &event) != 0)
                fail("epoll_ctl");
        }
    }
}

int main(void)
{
    shared = memory(sizeof *shared);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* nobody waits for a process, so that its number stays its own until the end */
    make_objects();
    int waiting = 0;
    for (int number = 0; number < KINDS; number++) {
        if (kinds[number].forked)
            continue;
        shared->alive[number] = kinds[number].count;
        shared->remaining += kinds[number].daemon ? 0 : kinds[number].count;
        waiting += kinds[number].count;
    }
    for (int number = 0; number < KINDS; number++)
        for (int i = 0; i < kinds[number].count && !kinds[number].forked; i++)
            begin_task(number, 0);
    pthread_mutex_lock(&shared->lock);
    while (shared->ready < waiting)
        pthread_cond_wait(&shared->changed, &shared->lock);
    shared->begin = now(CLOCK_MONOTONIC);
    shared->is_open = 1;
    pthread_cond_broadcast(&shared->opened);
    struct timespec end = { (shared->begin + DURATION) / 1000000000, (shared->begin + DURATION) % 1000000000 };
    while (shared->remaining > 0)
        if (DURATION == 0)
            pthread_cond_wait(&shared->changed, &shared->lock);
        else if (pthread_cond_timedwait(&shared->changed, &shared->lock, &end) == ETIMEDOUT)
            break;
    long long span = now(CLOCK_MONOTONIC) - shared->begin;
    for (int i = 0; i < shared->process_count; i++)
        kill(shared->processes[i], SIGKILL);
    for (int i = 0; i < COUNTED; i++)
        if (shared->counts[i] > 0)
            printf("%s %llu\n", words[i], (unsigned long long)shared->counts[i]);
    fprintf(stderr, "ended after %lld.%06lld s\n", span / 1000000000, span % 1000000000 / 1000);
    if (shared->refused > 0)
        fprintf(stderr, "%d requests for a policy, a nice value or CPUs were refused: try as root, or on a machine with these CPUs\n", shared->refused);
    fflush(stdout);
    _exit(0);
}
