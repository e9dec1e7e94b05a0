/* What the scheduler takes, in instructions, counted by crates/readyq/c/tests/plugin.c between marks.
 *
 * There is no clock: a tick comes when a window pends it, so that every count is exact and the same in each run. A section prints the names of its one or
 * two kinds of windows and has TIMES of each; an empty window of number 6 begins it. Last come the order in which tasks of a priority ran, and the bytes of a TCB. */
#include <stddef.h>

#include "board.h"

#include "FreeRTOS.h"
#include "semphr.h"
#include "task.h"

/* hint.w #0x4N: does nothing on the processor. */
#define MARK(number) __asm__ volatile(".inst.w 0xf3af8040 + %c0" ::"i"(number) : "memory")
#define BEGIN() MARK(10) /* The first window of a section, */
#define END() MARK(11)
#define BEGIN_2() MARK(14) /* the second. */
#define END_2() MARK(15)

enum { TIMES = 200, MOST = 128, STACK = 2 * configMINIMAL_STACK_SIZE, SLEEP = 10000 };
enum { LOWEST = 1, LOW = 2, BENCH_PRIORITY = 3, MIDDLE = 4, HIGH = 5 };

static TaskHandle_t bench, others[MOST], helper;
static SemaphoreHandle_t semaphore;
static volatile unsigned left;
static uint32_t random_state = 1;

void vPortSetupTimerInterrupt(void)
{
}

static inline void tick(void)
{
    __asm__ volatile("str %1, [%0]\n dsb\n isb" ::"r"(0xe000ed04), "r"(1u << 26) : "memory"); /* Pends SysTick. */
}

static uint32_t random_to(uint32_t most)
{
    random_state = random_state * 1664525u + 1013904223u;
    return 1 + (uint32_t)(((uint64_t)random_state * most) >> 32);
}

/* Names the one or two windows that follow, and says among how many tasks. */
static void section(const char *first, const char *second, const char *among, unsigned number)
{
    MARK(12);
    MARK(13);
    for (const char *name = first; name != NULL; name = name == first ? second : NULL) {
        print(name == first ? "" : ";"), print(name);
        if (among != NULL) {
            print(", "), print(among), print(": "), print_number(number);
        }
    }
    print("\n");
}

static void create(TaskFunction_t task, void *argument, UBaseType_t priority, TaskHandle_t *handle)
{
    if (xTaskCreate(task, "t", STACK, argument, priority, handle) != pdPASS) {
        stop("no memory", "", 0);
    }
}

static void create_others(TaskFunction_t task, unsigned number, UBaseType_t priority)
{
    for (uintptr_t other = 0; other < number; other++) {
        create(task, (void *)other, priority, &others[other]);
    }
}

static void delete_others(unsigned number)
{
    for (unsigned other = 0; other < number; other++) {
        vTaskDelete(others[other]);
    }
}

/* ---- The method itself ---- */

static void nothing_handler(void)
{
}

static void known(void)
{
    static void *vectors[16] __attribute__((aligned(128)));
    volatile uint32_t *vtor = (volatile uint32_t *)0xe000ed08;
    section("check: a loop of 2000 instructions", "check: an interrupt that is pended: 3 instructions and 1 of its handler", NULL, 0);
    vectors[15] = nothing_handler;
    for (unsigned time = 0; time < TIMES; time++) {
        unsigned count = 1000;
        __asm__ volatile("" : "+r"(count)); /* It is in its register before the mark. */
        BEGIN();
        __asm__ volatile("1: subs %0, #1\n bne 1b" : "+r"(count)::"cc");
        END();
        uint32_t before = *vtor;
        *vtor = (uint32_t)vectors;
        uint32_t icsr = 0xe000ed04, pend = 1u << 26;
        __asm__ volatile("" : "+r"(icsr), "+r"(pend));
        BEGIN_2();
        __asm__ volatile("str %1, [%0]\n dsb\n isb" ::"r"(icsr), "r"(pend) : "memory");
        END_2();
        *vtor = before;
    }
}

/* ---- Yields ---- */

static void yields(void *nothing)
{
    (void)nothing;
    for (;;) {
        if (left-- == 0) {
            xTaskNotifyGive(bench);
        }
        BEGIN();
        taskYIELD();
        END();
    }
}

static void yield_among(unsigned number)
{
    section("yield", NULL, "tasks of the priority", number);
    left = TIMES + number; /* Each one's first turn is no window. */
    create_others(yields, number, LOW);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    delete_others(number);
}

/* ---- Gives ---- */

static void takes(void *ticks)
{
    for (;;) {
        xSemaphoreTake(semaphore, (TickType_t)(uintptr_t)ticks);
        END();
    }
}

static void takes_notification(void *nothing)
{
    (void)nothing;
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        END();
    }
}

static void gives(void)
{
    section("give of a semaphore that wakes a task of higher priority", NULL, NULL, 0);
    create(takes, (void *)portMAX_DELAY, HIGH, &helper);
    for (unsigned time = 0; time < TIMES; time++) {
        BEGIN();
        xSemaphoreGive(semaphore);
    }
    vTaskDelete(helper);
    section("notification that wakes a task of higher priority", NULL, NULL, 0);
    create(takes_notification, NULL, HIGH, &helper);
    for (unsigned time = 0; time < TIMES; time++) {
        BEGIN();
        xTaskNotifyGive(helper);
    }
    vTaskDelete(helper);
}

/* ---- Delays ---- */

static void sleeps(void *number)
{
    for (;;) {
        vTaskDelay(SLEEP * (1 + (TickType_t)(uintptr_t)number));
    }
}

static void gives_with_a_limit(unsigned number)
{
    section("give that wakes a task which waits with a time limit", NULL, "others delayed", number);
    create_others(sleeps, number, MIDDLE);
    create(takes, (void *)(SLEEP * (number / 2) + 1), HIGH, &helper); /* In the middle of the others. */
    for (unsigned time = 0; time < TIMES; time++) {
        BEGIN();
        xSemaphoreGive(semaphore);
    }
    vTaskDelete(helper);
    delete_others(number);
}

static void delays(void *ticks)
{
    uint32_t most = (uint32_t)(uintptr_t)ticks;
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        TickType_t delay = most == 1 ? 1 : random_to(most);
        BEGIN();
        vTaskDelay(delay);
        END_2();
    }
}

static void delay_among(unsigned number)
{
    section("delay that ends at a random place among the others", "its end by xTaskAbortDelay", "others delayed", number);
    create_others(sleeps, number, MIDDLE);
    create(delays, (void *)(SLEEP * (number + 1)), HIGH, &helper);
    for (unsigned time = 0; time < TIMES; time++) {
        xTaskNotifyGive(helper);
        END();
        BEGIN_2();
        xTaskAbortDelay(helper);
    }
    vTaskDelete(helper);
    section("delay of 1 tick", "the tick that wakes it and switches to it", "others delayed", number);
    create(delays, (void *)1, HIGH, &helper);
    for (unsigned time = 0; time < TIMES; time++) {
        xTaskNotifyGive(helper);
        END();
        BEGIN_2();
        tick();
    }
    vTaskDelete(helper);
    section("tick that wakes no task", NULL, "others delayed", number);
    for (unsigned time = 0; time < TIMES; time++) {
        BEGIN();
        tick();
        END();
    }
    delete_others(number);
}

static void sleeps_a_tick(void *nothing)
{
    (void)nothing;
    for (;;) {
        vTaskDelay(1);
    }
}

/* The window is the interrupt and nothing else: the tasks that it wakes have a lower priority. */
static void tick_wakes(unsigned number)
{
    section("tick that wakes tasks of lower priority", NULL, "woken", number);
    create_others(sleeps_a_tick, number, LOW);
    for (unsigned time = 0; time < TIMES; time++) {
        vTaskPrioritySet(NULL, LOWEST); /* All sleep again, */
        vTaskPrioritySet(NULL, BENCH_PRIORITY);
        BEGIN();
        tick(); /* and wake. */
        END();
    }
    delete_others(number);
}

static void spins(void *nothing)
{
    (void)nothing;
    for (;;) {
        if (left-- == 0) {
            xTaskNotifyGive(bench);
        }
        BEGIN();
        tick();
        END();
    }
}

static void tick_slices(unsigned number)
{
    section("tick that ends a time slice and switches", NULL, "tasks of the priority", number);
    left = TIMES + number;
    create_others(spins, number, LOW);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    delete_others(number);
}

/* ---- States ---- */

static void stays(void *nothing)
{
    (void)nothing;
    for (;;) {
    }
}

static void suspends(unsigned number)
{
    section("suspend a ready task", "resume it", "tasks of the priority", number);
    create_others(stays, number, LOW);
    for (unsigned time = 0; time < TIMES; time++) {
        TaskHandle_t task = others[random_to(number) - 1];
        BEGIN();
        vTaskSuspend(task);
        END();
        BEGIN_2();
        vTaskResume(task);
        END_2();
    }
    section("lower the priority of a ready task", "raise it", "tasks of the priority", number);
    for (unsigned time = 0; time < TIMES; time++) {
        TaskHandle_t task = others[random_to(number) - 1];
        BEGIN();
        vTaskPrioritySet(task, LOWEST);
        END();
        BEGIN_2();
        vTaskPrioritySet(task, LOW);
        END_2();
    }
    delete_others(number);
}

static void inherits(void *mutex)
{
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        BEGIN();
        xSemaphoreTake(mutex, portMAX_DELAY);
        END_2();
        xSemaphoreGive(mutex);
    }
}

static void inheritance(void)
{
    SemaphoreHandle_t mutex = xSemaphoreCreateMutex();
    section("wait for a mutex whose holder inherits the priority", "its give: the holder's priority falls and the other runs", NULL, 0);
    create(inherits, mutex, HIGH, &helper);
    for (unsigned time = 0; time < TIMES; time++) {
        xSemaphoreTake(mutex, 0);
        xTaskNotifyGive(helper);
        END();
        BEGIN_2();
        xSemaphoreGive(mutex);
    }
    vTaskDelete(helper);
}

/* ---- The order of equals ---- */

static char order[16];

/* Says its name at each turn. R makes the bench suspend it and resume N. */
static void says(void *name)
{
    for (;;) {
        order[left++] = *(const char *)name;
        if (left == 10 || *(const char *)name == 'R') {
            xTaskNotifyGive(bench);
        }
        taskYIELD();
    }
}

/* X, R, A and B are ready in this order. When R runs, it is suspended, and N resumed: who is next? */
static void print_order(void)
{
    static const char *const names[] = {"X", "R", "A", "B", "N"};
    left = 0;
    for (unsigned name = 0; name < 5; name++) {
        create(says, (void *)names[name], LOW, &others[name]);
    }
    vTaskSuspend(others[4]);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    vTaskSuspend(others[1]);
    vTaskResume(others[4]);
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    delete_others(5);
    print("order;"), print(order), print("\n");
}

static void measure(void *nothing)
{
    static const unsigned numbers[] = {2, 8, 32}, delayed[] = {1, 8, 32, 128};
    (void)nothing;
    known();
    for (unsigned index = 0; index < 3; index++) {
        yield_among(numbers[index]);
    }
    gives();
    for (unsigned index = 0; index < 3; index++) {
        gives_with_a_limit(delayed[index]);
    }
    for (unsigned index = 0; index < 4; index++) {
        delay_among(delayed[index]);
    }
    for (unsigned index = 0; index < 3; index++) {
        tick_wakes(delayed[index]);
    }
    tick_slices(2);
    suspends(1);
    suspends(32);
    inheritance();
    MARK(12);
    MARK(13);
    print_order();
    print("TCB;"), print_number(sizeof(StaticTask_t)), print("\n");
    leave(0);
}

int main(void)
{
    semaphore = xSemaphoreCreateBinary();
    create(measure, NULL, BENCH_PRIORITY, &bench);
    vTaskStartScheduler();
    return 4;
}
