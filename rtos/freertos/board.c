/* What a program needs on QEMU's mps2-an385: vectors, start, output and exit by semihosting. */
#include "board.h"

#include <stdint.h>

#include "FreeRTOS.h"
#include "task.h"

extern uint32_t bss_begin, bss_end, stack_end;
int main(void);
void vPortSVCHandler(void);
void xPortPendSVHandler(void);
void xPortSysTickHandler(void);

static int semihosting(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void print(const char *text)
{
    semihosting(4, text); /* SYS_WRITE0 */
}

void print_number(unsigned number)
{
    char digits[12], *first = digits + sizeof digits - 1;
    *first = 0;
    do {
        *--first = (char)('0' + number % 10);
    } while ((number /= 10) != 0);
    print(first);
}

void leave(int code)
{
    const uint32_t reason[2] = {0x20026, (uint32_t)code}; /* ADP_Stopped_ApplicationExit */
    semihosting(0x20, reason);                            /* SYS_EXIT_EXTENDED */
    for (;;) {
    }
}

void stop(const char *why, const char *file, unsigned line)
{
    const char *name = file;
    __asm__ volatile("cpsid i");
    for (; *file != 0; file++) {
        name = *file == '/' ? file + 1 : name;
    }
    print("stopped: "), print(name), print(":"), print_number(line), print(": "), print(why), print("\n");
    leave(3);
}

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    (void)task;
    stop("stack overflow", name, 0);
}

static void fault(void)
{
    stop("a fault of the processor", "", 0);
}

__attribute__((noreturn)) void reset(void)
{
    for (uint32_t *word = &bss_begin; word != &bss_end; word++) {
        *word = 0;
    }
    leave(main());
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    &stack_end, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, vPortSVCHandler, fault, 0, xPortPendSVHandler, xPortSysTickHandler,
};
