/* A plugin of QEMU's (interface version 1: QEMU 4.2 to 9.0): counts the instructions between the marks of `count.c`, which it does not count.
 *
 * `out=FILE` gets a line for each operation and number of instructions: operation, instructions, how often. What is used of the interface is declared
 * here, after include/qemu/qemu-plugin.h. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*translated)(uint64_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, void (*ran)(unsigned, void *), int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, int add, void *counter, uint64_t by);
void qemu_plugin_register_atexit_cb(uint64_t id, void (*exits)(uint64_t, void *), void *data);
int qemu_plugin_install(uint64_t id, const void *info, int count, char **arguments);

int qemu_plugin_version = 1;

enum { OPERATIONS = 5, MOST = 1 << 16 };

static FILE *out;
static uint64_t ran, begun;
static uint64_t times[OPERATIONS][MOST];

/* The number in a mark, or -1. */
static int mark(const struct qemu_plugin_insn *insn)
{
    size_t size = qemu_plugin_insn_size(insn);
    uint8_t bytes[8] = {0};
    uint32_t word = 0;
    memcpy(bytes, qemu_plugin_insn_data(insn), size < sizeof bytes ? size : sizeof bytes);
    memcpy(&word, bytes, sizeof word);
    if (word == 0x00841f0f && bytes[5] == 0x1a && bytes[6] == 0xed && bytes[7] == 0x5c) { /* x86-64: nopl 0x5ced1aNN(%rax,%rax,1) */
        return bytes[4];
    }
    if ((word & 0xfffffe1f) == 0xd28b801f) { /* aarch64: movz xzr, #0x5c0N */
        return (int)(word >> 5 & 15);
    }
    if ((word & 0xfff0ffff) == 0x8040f3af) { /* Thumb-2: hint.w #0x4N; at the end of a page, QEMU appends what follows to its bytes */
        return (int)(word >> 16 & 15);
    }
    if ((word & 0xffff0fff) == 0x5ce00037) { /* RISC-V: lui zero, 0x5ce0N */
        return (int)(word >> 12 & 15);
    }
    return -1;
}

static void marked(unsigned cpu, void *number)
{
    uint64_t operation = (uint64_t)(uintptr_t)number / 2, cost = ran - begun;
    (void)cpu;
    if ((uintptr_t)number % 2 == 0) {
        begun = ran;
    } else if (operation < OPERATIONS && cost < MOST) {
        times[operation][cost]++;
    } else {
        fprintf(out, "%llu %llu 1\n", (unsigned long long)operation, (unsigned long long)cost);
    }
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    for (size_t index = 0; index < qemu_plugin_tb_n_insns(tb); index++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, index);
        int number = mark(insn);
        if (number < 0) {
            qemu_plugin_register_vcpu_insn_exec_inline(insn, 0, &ran, 1);
        } else {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, 0, (void *)(uintptr_t)number);
        }
    }
}

static void exits(uint64_t id, void *data)
{
    (void)id;
    (void)data;
    for (unsigned operation = 0; operation < OPERATIONS; operation++) {
        for (unsigned cost = 0; cost < MOST; cost++) {
            if (times[operation][cost] != 0) {
                fprintf(out, "%u %u %llu\n", operation, cost, (unsigned long long)times[operation][cost]);
            }
        }
    }
    fclose(out);
}

int qemu_plugin_install(uint64_t id, const void *info, int count, char **arguments)
{
    (void)info;
    if (count != 1 || strncmp(arguments[0], "out=", 4) != 0 || (out = fopen(arguments[0] + 4, "w")) == NULL) {
        fprintf(stderr, "plugin: say out=FILE, a file that can be written\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, exits, NULL);
    return 0;
}
