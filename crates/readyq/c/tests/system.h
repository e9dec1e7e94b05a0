/* What a test program needs of an operating system, without a C library: one program for every architecture, under Linux or qemu-user. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
enum { SYS_READ = 0, SYS_WRITE = 1, SYS_EXIT = 60 };
#define SYSTEM_REGISTERS(call) register long r0 __asm__("rdi") = a, r1 __asm__("rsi") = b, r2 __asm__("rdx") = c, n __asm__("rax") = (call)
#define SYSTEM_CALL __asm__ volatile("syscall" : "+r"(n) : "r"(r0), "r"(r1), "r"(r2) : "rcx", "r11", "memory")
#define SYSTEM_RESULT n
#define SYSTEM_ENTRY "xor %ebp, %ebp\n and $-16, %rsp\n call run\n"
#elif defined(__aarch64__)
enum { SYS_READ = 63, SYS_WRITE = 64, SYS_EXIT = 93 };
#define SYSTEM_REGISTERS(call) register long r0 __asm__("x0") = a, r1 __asm__("x1") = b, r2 __asm__("x2") = c, n __asm__("x8") = (call)
#define SYSTEM_CALL __asm__ volatile("svc 0" : "+r"(r0) : "r"(r1), "r"(r2), "r"(n) : "memory")
#define SYSTEM_RESULT r0
#define SYSTEM_ENTRY "bl run\n"
#elif defined(__arm__)
enum { SYS_READ = 3, SYS_WRITE = 4, SYS_EXIT = 1 };
#define SYSTEM_REGISTERS(call) register long r0 __asm__("r0") = a, r1 __asm__("r1") = b, r2 __asm__("r2") = c, n __asm__("r7") = (call)
#define SYSTEM_CALL __asm__ volatile("svc 0" : "+r"(r0) : "r"(r1), "r"(r2), "r"(n) : "memory")
#define SYSTEM_RESULT r0
#define SYSTEM_ENTRY "bl run\n"
#elif defined(__riscv)
enum { SYS_READ = 63, SYS_WRITE = 64, SYS_EXIT = 93 };
#define SYSTEM_REGISTERS(call) register long r0 __asm__("a0") = a, r1 __asm__("a1") = b, r2 __asm__("a2") = c, n __asm__("a7") = (call)
#define SYSTEM_CALL __asm__ volatile("ecall" : "+r"(r0) : "r"(r1), "r"(r2), "r"(n) : "memory")
#define SYSTEM_RESULT r0
#define SYSTEM_ENTRY "call run\n"
#else
#error "no system calls for this architecture"
#endif

static long system_call(long call, long a, long b, long c)
{
    SYSTEM_REGISTERS(call);
    SYSTEM_CALL;
    return SYSTEM_RESULT;
}

static void stop(int code)
{
    for (;;) {
        (void)system_call(SYS_EXIT, code, 0, 0);
    }
}

static inline void say(const char *text)
{
    long length = 0;
    while (text[length] != 0) {
        length++;
    }
    (void)system_call(SYS_WRITE, 2, (long)(intptr_t)text, length);
}

/* Reads all of standard input into `bytes`. */
static inline size_t read_all(uint8_t *bytes, size_t most)
{
    size_t length = 0;
    long got;
    while (length < most && (got = system_call(SYS_READ, 0, (long)(intptr_t)(bytes + length), (long)(most - length))) > 0) {
        length += (size_t)got;
    }
    return length;
}

static inline void write_all(const uint8_t *bytes, size_t length)
{
    size_t done = 0;
    long put;
    while (done < length && (put = system_call(SYS_WRITE, 1, (long)(intptr_t)(bytes + done), (long)(length - done))) > 0) {
        done += (size_t)put;
    }
}

/* Compilers may call these two even in a program without a library. */
void *memset(void *to, int byte, size_t length);
void *memset(void *to, int byte, size_t length)
{
    for (volatile uint8_t *at = to; length > 0; length--) {
        *at++ = (uint8_t)byte;
    }
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t length);
void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
    const uint8_t *source = from;
    for (volatile uint8_t *at = to; length > 0; length--) {
        *at++ = *source++;
    }
    return to;
}

#ifdef __arm__
/* Their names for code without an operating system, as Rust's. */
void __aeabi_memcpy(void *restrict to, const void *restrict from, size_t length);
void __aeabi_memcpy(void *restrict to, const void *restrict from, size_t length)
{
    (void)memcpy(to, from, length);
}

void __aeabi_memset(void *to, size_t length, int byte);
void __aeabi_memset(void *to, size_t length, int byte)
{
    (void)memset(to, byte, length);
}

void __aeabi_memclr(void *to, size_t length);
void __aeabi_memclr(void *to, size_t length)
{
    (void)memset(to, 0, length);
}

__asm__(".set __aeabi_memcpy4, __aeabi_memcpy\n .set __aeabi_memcpy8, __aeabi_memcpy\n"
        ".set __aeabi_memset4, __aeabi_memset\n .set __aeabi_memset8, __aeabi_memset\n"
        ".set __aeabi_memclr4, __aeabi_memclr\n .set __aeabi_memclr8, __aeabi_memclr\n"
        ".globl __aeabi_memcpy4, __aeabi_memcpy8, __aeabi_memset4, __aeabi_memset8, __aeabi_memclr4, __aeabi_memclr8\n");
#endif

/* The program; its result is the exit code. */
static int program(void);

void run(void);
void run(void)
{
    stop(program());
}

__asm__(".globl _start\n .text\n"
#ifdef __arm__
        ".thumb_func\n"
#endif
        "_start:\n " SYSTEM_ENTRY);

#endif
