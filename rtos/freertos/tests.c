/* The standard demo tests of FreeRTOS for TICKS ticks, and three of ours. Prints a line for each: its name, and passed or failed. */
#include <string.h>

#include "board.h"

#include "FreeRTOS.h"
#include "task.h"

#include "AbortDelay.h"
#include "BlockQ.h"
#include "EventGroupsDemo.h"
#include "GenQTest.h"
#include "IntSemTest.h"
#include "MessageBufferDemo.h"
#include "PollQ.h"
#include "QPeek.h"
#include "QueueOverwrite.h"
#include "QueueSet.h"
#include "QueueSetPolling.h"
#include "StaticAllocation.h"
#include "StreamBufferDemo.h"
#include "StreamBufferInterrupt.h"
#include "TaskNotify.h"
#include "TaskNotifyArray.h"
#include "TimerDemo.h"
#include "blocktim.h"
#include "countsem.h"
#include "death.h"
#include "dynamic.h"
#include "flop.h"
#include "integer.h"
#include "recmutex.h"
#include "semtest.h"

enum { PERIOD = 5000, CHECKS = TICKS / PERIOD, SLEEPERS = 8, FAR = 2 };

/* ---- Ours ---- */

static volatile unsigned sleeps[SLEEPERS], late, woken_early;
static TaskHandle_t suspended;

/* Delays of 1 to 300 ticks, at the highest priority: each ends at its tick, whatever the tick count does meanwhile. */
static void sleeper(void *number)
{
    uint32_t random = 12345u + (uint32_t)(uintptr_t)number;
    for (;;) {
        random = random * 1664525u + 1013904223u;
        TickType_t ticks = 1 + (random >> 16) % 300, begin = xTaskGetTickCount();
        vTaskDelay(ticks);
        late += xTaskGetTickCount() - begin != ticks;
        sleeps[(uintptr_t)number]++;
    }
}

/* Delays of more than half the range of a tick count, which do not end while this runs. */
static void far_sleeper(void *ticks)
{
    vTaskDelay((TickType_t)(uintptr_t)ticks);
    woken_early++;
    vTaskSuspend(NULL);
}

static void suspends_itself(void *nothing)
{
    (void)nothing;
    for (;;) {
        vTaskSuspend(NULL);
    }
}

static BaseType_t delays_are_exact(void)
{
    BaseType_t all_slept = pdTRUE;
    for (unsigned number = 0; number < SLEEPERS; number++) {
        all_slept &= sleeps[number] > TICKS / 300;
    }
    return all_slept && late == 0;
}

static BaseType_t far_delays_last(void)
{
    return woken_early == 0 && eTaskGetState(xTaskGetHandle("far 0")) == eBlocked && eTaskGetState(xTaskGetHandle("far 1")) == eBlocked;
}

/* What the kernel says of a state agrees with what the task does, and every task is in one list. It holds the scheduler for several ticks, so it comes last. */
static BaseType_t states_agree(void)
{
    static TaskStatus_t tasks[128];
    UBaseType_t number, states[eInvalid + 1] = {0};
    vTaskSuspendAll();
    number = uxTaskGetSystemState(tasks, 128, NULL);
    BaseType_t well = number == uxTaskGetNumberOfTasks();
    for (UBaseType_t task = 0; task < number; task++) {
        states[tasks[task].eCurrentState]++;
        if (tasks[task].eCurrentState != eDeleted) {
            well &= eTaskGetState(tasks[task].xHandle) == tasks[task].eCurrentState;
        }
        for (UBaseType_t other = 0; other < task; other++) {
            well &= tasks[other].xHandle != tasks[task].xHandle;
        }
    }
    xTaskResumeAll();
    well &= states[eRunning] == 1 && states[eReady] >= 1 && states[eBlocked] >= FAR && states[eInvalid] == 0;
    well &= xTaskGetHandle("suspended") == suspended && eTaskGetState(suspended) == eSuspended;
    vTaskResume(suspended);
    well &= eTaskGetState(suspended) == eReady;
    return well && xTaskGetHandle("nobody") == NULL;
}

static void start_ours(void)
{
    static const uint32_t far[FAR] = {0x80000005u, 0xfffffff0u};
    for (uintptr_t number = 0; number < SLEEPERS; number++) {
        xTaskCreate(sleeper, "sleeper", configMINIMAL_STACK_SIZE, (void *)number, configMAX_PRIORITIES - 1, NULL);
    }
    xTaskCreate(far_sleeper, "far 0", configMINIMAL_STACK_SIZE, (void *)far[0], 1, NULL);
    xTaskCreate(far_sleeper, "far 1", configMINIMAL_STACK_SIZE, (void *)far[1], 1, NULL);
    xTaskCreate(suspends_itself, "suspended", configMINIMAL_STACK_SIZE, NULL, 1, &suspended);
}

/* ---- All ---- */

static BaseType_t timers_run(void)
{
    return xAreTimerDemoTasksStillRunning(PERIOD);
}

static struct {
    const char *name;
    BaseType_t (*passes)(void);
    BaseType_t failed;
} tests[] = {
    {"AbortDelay", xAreAbortDelayTestTasksStillRunning, 0},
    {"BlockQ", xAreBlockingQueuesStillRunning, 0},
    {"EventGroupsDemo", xAreEventGroupTasksStillRunning, 0},
    {"GenQTest", xAreGenericQueueTasksStillRunning, 0},
    {"IntSemTest", xAreInterruptSemaphoreTasksStillRunning, 0},
    {"MessageBufferDemo", xAreMessageBufferTasksStillRunning, 0},
    {"PollQ", xArePollingQueuesStillRunning, 0},
    {"QPeek", xAreQueuePeekTasksStillRunning, 0},
    {"QueueOverwrite", xIsQueueOverwriteTaskStillRunning, 0},
    {"QueueSet", xAreQueueSetTasksStillRunning, 0},
    {"QueueSetPolling", xAreQueueSetPollTasksStillRunning, 0},
    {"StaticAllocation", xAreStaticAllocationTasksStillRunning, 0},
    {"StreamBufferDemo", xAreStreamBufferTasksStillRunning, 0},
    {"StreamBufferInterrupt", xIsInterruptStreamBufferDemoStillRunning, 0},
    {"TaskNotify", xAreTaskNotificationTasksStillRunning, 0},
    {"TaskNotifyArray", xAreTaskNotificationArrayTasksStillRunning, 0},
    {"TimerDemo", timers_run, 0},
    {"blocktim", xAreBlockTimeTestTasksStillRunning, 0},
    {"countsem", xAreCountingSemaphoreTasksStillRunning, 0},
    {"death", xIsCreateTaskStillRunning, 0},
    {"dynamic", xAreDynamicPriorityTasksStillRunning, 0},
    {"flop", xAreMathsTaskStillRunning, 0},
    {"integer", xAreIntegerMathsTaskStillRunning, 0},
    {"recmutex", xAreRecursiveMutexTasksStillRunning, 0},
    {"semtest", xAreSemaphoreTasksStillRunning, 0},
    {"ours: delays are exact", delays_are_exact, 0},
    {"ours: far delays last", far_delays_last, 0},
    {"ours: states agree", states_agree, 0},
};
enum { TESTS = sizeof tests / sizeof tests[0], OURS = TESTS - 3 };

void vApplicationTickHook(void)
{
    vQueueSetAccessQueueSetFromISR();
    vPeriodicEventGroupsProcessing();
    vPeriodicStreamBufferProcessing();
    vQueueOverwritePeriodicISRDemo();
    vQueueSetPollingInterruptAccess();
    xNotifyTaskFromISR();
    xNotifyArrayTaskFromISR();
    vTimerPeriodicISRTests();
    vBasicStreamBufferSendFromISR();
    vInterruptSemaphorePeriodicTest();
}

static void check(void *nothing)
{
    TickType_t last = xTaskGetTickCount();
    (void)nothing;
    for (unsigned round = 1; round <= CHECKS; round++) {
        xTaskDelayUntil(&last, PERIOD);
        for (unsigned test = 0; test < TESTS; test++) {
            if (test >= OURS && round != CHECKS) {
                break; /* They do not look at what happened since the last check, and disturb the others. */
            }
            tests[test].failed |= tests[test].passes() != pdTRUE;
        }
    }
    for (unsigned test = 0; test < TESTS; test++) {
        print(tests[test].name), print(!tests[test].failed ? ",passed\n" : ",failed\n");
    }
    leave(0);
}

int main(void)
{
    vStartGenericQueueTasks(tskIDLE_PRIORITY);
    vStartBlockingQueueTasks(tskIDLE_PRIORITY + 1);
    vStartRecursiveMutexTasks();
    vCreateBlockTimeTasks();
    vStartSemaphoreTasks(tskIDLE_PRIORITY + 1);
    vStartPolledQueueTasks(tskIDLE_PRIORITY + 2);
    vStartQueuePeekTasks();
    vStartQueueSetTasks();
    vStartEventGroupTasks();
    vStartMessageBufferTasks(configMINIMAL_STACK_SIZE + configMINIMAL_STACK_SIZE / 2);
    vStartStreamBufferTasks();
    vCreateAbortDelayTasks();
    vStartCountingSemaphoreTasks();
    vStartDynamicPriorityTasks();
    vStartQueueOverwriteTask(tskIDLE_PRIORITY);
    vStartQueueSetPollingTask();
    vStartStaticallyAllocatedTasks();
    vStartTaskNotifyTask();
    vStartTaskNotifyArrayTask();
    vStartTimerDemoTask(50);
    vStartStreamBufferInterruptDemo();
    vStartInterruptSemaphoreTasks();
    vStartIntegerMathTasks(tskIDLE_PRIORITY);
    vStartMathTasks(tskIDLE_PRIORITY);
    start_ours();
    xTaskCreate(check, "check", 4 * configMINIMAL_STACK_SIZE, NULL, configMAX_PRIORITIES - 2, NULL);
    vCreateSuicidalTasks(tskIDLE_PRIORITY + 3);
    vTaskStartScheduler();
    return 4;
}
