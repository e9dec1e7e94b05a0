/* Marks between which `plugin.c` counts instructions. */
#ifndef MARK_H
#define MARK_H

enum { POP = 0, INSERT = 1, REMOVE = 2, INSERT_FRONT = 3, LOOP = 4 };

/* A no-operation with a number in it: 2 × operation at its begin, one more at its end. */
#if defined(__x86_64__)
#define MARK(number) __asm__ volatile("nopl 0x5ced1a00+%c0(%%rax,%%rax,1)" : : "i"(number) : "memory")
#elif defined(__aarch64__)
#define MARK(number) __asm__ volatile(".inst 0xd28b801f + (%c0 << 5)" : : "i"(number) : "memory")
#elif defined(__arm__)
#define MARK(number) __asm__ volatile(".inst.w 0xf3af8040 + %c0" : : "i"(number) : "memory")
#else
#define MARK(number) __asm__ volatile(".4byte 0x5ce00037 + (%c0 << 12)" : : "i"(number) : "memory")
#endif

/* What `call` costs as the operation `operation`. */
#define MEASURE(operation, call) \
    do { \
        MARK(2 * (operation)); \
        call; \
        MARK(2 * (operation) + 1); \
    } while (0)

#endif
