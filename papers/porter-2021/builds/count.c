/*
 * A plugin of QEMU's that counts the instructions of a program, and says how many there were to
 * standard error as it ends. Built by tools/builds; the interface of QEMU 6 to 9.0.
 */
#include <stdint.h>
#include <stdio.h>

typedef uint64_t id;
struct block;

extern void qemu_plugin_register_vcpu_tb_trans_cb(id, void (*)(id, struct block *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct block *, int, void *, uint64_t);
extern void qemu_plugin_register_atexit_cb(id, void (*)(id, void *), void *);
extern size_t qemu_plugin_tb_n_insns(const struct block *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
static uint64_t instructions;

static void translated(id plugin, struct block *block)
{
	(void)plugin;
	qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &instructions, qemu_plugin_tb_n_insns(block));
}

static void ends(id plugin, void *unused)
{
	(void)plugin, (void)unused;
	fprintf(stderr, "instructions %llu\n", (unsigned long long)instructions);
}

__attribute__((visibility("default"))) int qemu_plugin_install(id plugin, const void *info, int count, char **words)
{
	(void)info, (void)count, (void)words;
	qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
	qemu_plugin_register_atexit_cb(plugin, ends, NULL);
	return 0;
}
