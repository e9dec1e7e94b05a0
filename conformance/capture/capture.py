#!/usr/bin/env python3
"""Reads vectors out of a kernel's fair scheduler.

    capture.py KERNEL NAME [SCENARIO...] [-o DIR]

KERNEL is a bzImage for x86-64 with BTF; NAME goes into the vectors' names and claims, as in
linux-6.18. Each file of scenarios/ is run in a guest with one CPU, whose time is the count of its
instructions. At the functions of the fair class the emulator stops, and the queue is read out of the
guest's memory: nothing is added to the kernel. The guest's clock advances by some 0.1 ms at a stop.
A busy period that begins with an empty queue becomes a vector.

It holds what it reads against the kernel's own sums (avg_vruntime, avg_load), and ends with 4 if they
differ, with 3 if the kernel is of no use, and with 77 if qemu-system-x86_64, gcc with a static libc, cpio
or what unpacks the kernel is missing."""

import argparse
import hashlib
import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import btf
import gdb

HERE = Path(__file__).parent
BEGINS, ENDS = 0x5CED1AB, 0x5CED1AC
MOST_EVENTS = 100
# Each with the names that it had in one kernel or another.
FUNCTIONS = {
    "join": ["enqueue_task_fair"],
    "leave": ["dequeue_task_fair"],
    "tick": ["task_tick_fair"],
    "yield": ["yield_task_fair"],
    "pick": ["pick_next_task_fair", "pick_task_fair"],
    "preempt": ["check_preempt_wakeup_fair", "check_preempt_wakeup", "wakeup_preempt_fair"],
    "new": ["wake_up_new_task"],
    "resched": ["resched_curr"],
    "lazily": ["resched_curr_lazy"],
    "other": ["put_prev_task_rt", "set_next_task_rt", "set_next_task_stop"],
    "prctl": ["__x64_sys_prctl"],
}
OPTIONAL = {"lazily", "other"}
VALUES = ["sysctl_sched_base_slice", "sysctl_sched_min_granularity"]
ARGUMENTS = (
    "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable tsc_early_khz=1000000 nokaslr norandmaps "
    "randomize_kstack_offset=off cryptomgr.notests damon_stat.enabled=0 noapictimer noautogroup rdinit=/init"
)


def missing(what):
    print(what, file=sys.stderr)
    raise SystemExit(77)


class Kernel:
    """An image, its types and its symbols."""

    def __init__(self, image, work):
        self.image, self.work = image, work
        elf = btf.unpacked(image)
        data = btf.section(elf, ".BTF") or missing(f"{image} has no type information (CONFIG_DEBUG_INFO_BTF)")
        self.types = btf.Types(data)
        self.sha256 = hashlib.sha256(Path(image).read_bytes()).hexdigest()
        self.release = re.search(rb"Linux version (\S+)", elf)[1].decode()
        subprocess.run(["gcc", "-O2", "-static", "-o", work / "init", HERE / "init.c"], check=True)
        names = sum(FUNCTIONS.values(), VALUES)
        with self.guest("," + ",".join(names) + ",\n") as guest:
            guest.wait(timeout=120)
        said = (work / "console").read_text(errors="replace")
        if "symbols end" not in said:
            btf.unusable(f"the guest did not say its symbols; its console:\n{said[-2000:]}")
        self.symbols = {name: int(at, 16) for at, name in re.findall(r"symbol (\w+) \w (\w+)", said)}

    def function(self, what):
        found = [self.symbols[name] for name in FUNCTIONS[what] if name in self.symbols]
        if not found and what not in OPTIONAL:
            btf.unusable(f"{self.release} has none of {', '.join(FUNCTIONS[what])}: teach FUNCTIONS its name")
        return found if what == "other" else found[:1]

    def guest(self, scenario, stopped=False):
        root = self.work / "root"
        shutil.rmtree(root, ignore_errors=True)
        (root / "proc").mkdir(parents=True)
        shutil.copy(self.work / "init", root / "init")
        (root / "scenario").write_text(scenario)
        names = "\n".join(["proc", "init", "scenario"])
        with open(self.work / "initramfs", "wb") as out:
            subprocess.run(
                ["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), cwd=root, stdout=out, check=True
            )
        command = ["qemu-system-x86_64", "-accel", "tcg", "-icount", "shift=0,sleep=on"]
        command += ["-rtc", "base=2026-01-01T00:00:00,clock=vm", "-seed", "1", "-cpu", "qemu64,-rdrand,-rdseed"]
        command += ["-smp", "1", "-m", "512M", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        command += ["-serial", f"file:{self.work / 'console'}", "-kernel", str(self.image)]
        command += ["-initrd", str(self.work / "initramfs"), "-append", ARGUMENTS]
        if stopped:
            command += ["-S", "-gdb", f"unix:{self.work / 'gdb'},server=on,wait=off"]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


class Reader:
    """The queue's state, out of the guest's memory."""

    def __init__(self, kernel, guest):
        offset = kernel.types.offset
        self.guest, self.offset = guest, offset
        self.entity, self.size = offset("task_struct", "se"), kernel.types.size("sched_entity")
        self.queue = offset("rq", "cfs")
        self.is_eevdf = offset("sched_entity", "deadline") is not None
        names = ["vruntime", "deadline", "slice", "on_rq", "sched_delayed", "custom_slice", "vlag", "load.weight"]
        self.protects = offset("sched_entity", "vprot") is not None
        self.members = {name: offset("sched_entity", name) for name in names}
        self.on_rq = "<I" if self.members["sched_delayed"] is None else "<B"
        base = offset("cfs_rq", "zero_vruntime")
        self.base = self.queue + (offset("cfs_rq", "min_vruntime") if base is None else base)
        sums = [("avg_vruntime", "avg_load"), ("sum_w_vruntime", "sum_weight")]
        self.sums = next((each for each in sums if offset("cfs_rq", each[0]) is not None), None)

    def rq(self, rq):
        """Its clock, its current task, the number of entities on its fair queue, and the base."""
        queue = self.guest.read(rq + self.queue, 256)

        def member(at, form="<Q"):
            if 0 <= at - self.queue < 248:
                return struct.unpack_from(form, queue, at - self.queue)[0]
            return self.guest.number(rq + at, form)

        count = self.offset("cfs_rq", "nr_queued")
        count = self.offset("cfs_rq", "nr_running") if count is None else count
        return {
            "clock": member(self.offset("rq", "clock_task")),
            "curr": member(self.offset("rq", "curr")),
            "idle": member(self.offset("rq", "idle")),
            "count": member(self.queue + count, "<I"),
            "base": member(self.base),
            "running": member(self.queue + self.offset("cfs_rq", "curr")),
            "root": member(self.queue + self.offset("cfs_rq", "tasks_timeline.rb_root.rb_node")),
            "sums": [member(self.queue + self.offset("cfs_rq", name), "<q") for name in self.sums or ()],
        }

    def task(self, task):
        data = self.guest.read(task + self.entity, self.size)
        forms = {"on_rq": self.on_rq, "sched_delayed": "<B", "custom_slice": "<B"}
        read = {
            name: 0 if at is None else struct.unpack_from(forms.get(name, "<Q"), data, at)[0]
            for name, at in self.members.items()
        }
        read["weight"] = max(2, read["load.weight"] >> 10)
        return read

    def least_slice(self, root):
        """The shortest request of the tree with this root, as its root has it."""
        at = self.offset("sched_entity", "min_slice")
        return self.guest.number(root - self.offset("sched_entity", "run_node") + at) if root and at else None

    def state(self, task):
        return self.guest.number(task + self.offset("task_struct", "__state"), "<I")


def signed(value):
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


class Period:
    """A busy period, on the way to becoming a vector."""

    def __init__(self, clock, base):
        self.began, self.base, self.tasks, self.events = clock, base, {}, []
        self.weights, self.slices, self.declared = {}, {}, []

    def number(self, task, read, is_new, default):
        if task not in self.tasks:
            number = self.tasks[task] = len(self.tasks) + 1
            self.weights[task] = read["weight"]
            self.slices[task] = read["slice"] if read["custom_slice"] else default
            vruntime = 0 if is_new or read["deadline"] else signed(read["vruntime"] - self.base)
            self.declared.append({
                "at": 0, "op": "task", "task": number, "weight": self.weights[task],
                "slice": self.slices[task], "vruntime": vruntime, "lag": 0 if is_new else signed(read["vlag"]),
            })  # fmt: skip
        return self.tasks[task]


class Capture:
    """Follows the guest through one scenario."""

    def __init__(self, kernel, scenario, keeps_stale):
        self.kernel, self.scenario, self.keeps_stale = kernel, scenario, keeps_stale
        self.periods, self.period, self.open = [], None, None
        self.stale, self.is_stale, self.pending, self.is_new, self.saved, self.checked = 0, False, False, False, None, 0

    def run(self):
        process = self.kernel.guest(self.scenario, stopped=True)
        try:
            path = self.kernel.work / "gdb"
            self.guest = None
            while self.guest is None:
                if process.poll() is not None:
                    raise SystemExit("the emulator has ended at once")
                try:
                    self.guest = gdb.Guest(path)
                except (FileNotFoundError, ConnectionRefusedError):
                    time.sleep(0.01)
            self.reader = Reader(self.kernel, self.guest)
            self.follow()
        except gdb.Ended:
            raise SystemExit(f"the guest ended early:\n{(self.kernel.work / 'console').read_text()[-2000:]}")
        finally:
            process.kill()
            process.wait()
            (self.kernel.work / "gdb").unlink(missing_ok=True)

    def follow(self):
        guest, self.at = self.guest, {}
        prctl = self.kernel.function("prctl")[0]
        guest.stop_at(prctl)
        while guest.number(guest.go_on()[gdb.RDI] + 14 * 8) != BEGINS:
            pass
        for what in FUNCTIONS:
            for address in self.kernel.function(what):
                self.at[address] = what
                guest.stop_at(address)
        slices = [self.kernel.symbols[name] for name in VALUES if name in self.kernel.symbols]
        self.slice = guest.number(slices[0], "<I") if slices else 3_000_000
        while True:
            registers = guest.go_on()
            what = self.at[guest.here]
            if what == "prctl":
                if guest.number(registers[gdb.RDI] + 14 * 8) == ENDS:
                    return
            elif what in ("resched", "lazily"):
                self.resched()
            elif what == "new":
                self.is_new = True
            elif what == "other":
                self.cut()
            else:
                self.called(what, registers)

    def called(self, what, registers):
        """Runs the guest to the end of the function in which it stands."""
        guest = self.guest
        top, rq, task = registers[gdb.RSP], registers[gdb.RDI], registers[gdb.RSI]
        before = None
        if what in ("join", "leave", "pick"):
            before = self.reader.rq(rq), self.reader.task(task) if what == "join" else None
        if what != "preempt":
            self.open = None
        back = guest.number(top)
        guest.stop_at(back)
        was = self.pending
        while True:
            registers = guest.go_on()
            if guest.here == back and registers[gdb.RSP] == top + 8:
                break
            self.pending |= self.at.get(guest.here) in ("resched", "lazily")
        guest.pass_by(back)
        getattr(self, "did_" + what)(rq, task, before, registers[gdb.RAX], was)

    def resched(self):
        if self.open and "resched" in self.open["then"]:
            self.open["then"]["resched"] = True
        self.pending = True

    def cut(self):
        """What follows cannot be told from what is known: the vector ends."""
        if self.period and self.period.events:
            self.periods.append(self.period)
        self.period = self.open = None

    def event(self, rq, op, was, **members):
        """Notes an event and the state after it."""
        if len(self.period.events) >= MOST_EVENTS:
            return self.cut()
        state = self.reader.rq(rq)
        event = {"at": state["clock"] - self.period.began, "op": op, **members, "then": {}}
        if op in ("wake", "new", "tick", "weight", "slice") and not was:
            event["then"]["resched"] = self.pending
        self.note_tasks(event, state)
        if self.is_stale and op not in ("tick", "block", "exit", "yield") and not self.keeps_stale:
            return self.cut()  # FINDINGS.md, L1: what follows depends on how the tree was turned
        self.period.events.append(event)
        self.open = event

    def note_tasks(self, event, state):
        """Notes the state of all tasks, if the running one has been charged for the time until now."""
        tasks, running = self.tasks(state), state["running"]
        event["then"].pop("tasks", None)
        if not running or self.guest.number(running + self.reader.offset("sched_entity", "exec_start")) == state["clock"]:
            event["then"]["tasks"] = tasks

    def tasks(self, state):
        period, reads = self.period, {}
        for task, number in period.tasks.items():
            read = self.reader.task(task)
            if read["on_rq"]:
                reads[number] = read, task
        total = sum(read["weight"] for read, _ in reads.values())
        mean = sum(read["weight"] * signed(read["vruntime"] - period.base) for read, _ in reads.values())
        self.hold(state, reads)
        rows = []
        for number, (read, _) in sorted(reads.items()):
            vruntime = signed(read["vruntime"] - period.base)
            row = {"task": number, "vruntime": vruntime}
            if self.reader.is_eevdf:
                row["deadline"] = signed(read["deadline"] - period.base)
                row["lag"] = (mean - vruntime * total) // total
                row["eligible"] = mean >= vruntime * total
            rows.append(row)
        return rows

    def hold(self, state, reads):
        """What was read against the sums that the kernel keeps of the entities in its tree."""
        if not state["sums"]:
            return
        tree = [read for read, task in reads.values() if task + self.reader.entity != state["running"]]
        least = self.reader.least_slice(state["root"])
        true = min((read["slice"] for read in tree), default=least)
        # How long the running task is protected depends on the least slice, if its own is no shorter;
        # before it had a `vprot`, it did not.
        own = next((read["slice"] for read, task in reads.values() if task + self.reader.entity == state["running"]), 0)
        self.stale += least not in (None, true)
        self.is_stale = self.reader.protects and least is not None and min(least, own) != min(true, own)
        ours = [
            sum(read["weight"] * signed(read["vruntime"] - state["base"]) for read in tree),
            sum(read["weight"] for read in tree),
        ]
        # Linux 7 keeps weights in full resolution.
        if state["sums"] not in (ours, [1024 * each for each in ours]):
            print(f"read {ours}, the kernel says {state['sums']}: {reads}", file=sys.stderr)
            raise SystemExit(4)
        self.checked += 1

    def did_join(self, rq, task, before, _result, was):
        state, read = before
        is_new, self.is_new = self.is_new, False
        if state["count"] == 0 and not self.saved:
            self.cut()
            if state["curr"] == state["idle"]:
                self.period = Period(self.reader.rq(rq)["clock"], state["base"])
        if self.period is None:
            return
        saved, self.saved = self.saved, None
        if saved:
            return self.changed(rq, task, was) if saved == task else self.cut()
        if read["on_rq"] and not read["sched_delayed"]:
            return self.cut()
        if is_new and not self.reader.is_eevdf:
            return self.cut()
        read["slice"] = self.reader.task(task)["slice"]
        number = self.period.number(task, read, is_new, self.slice)
        self.event(rq, "new" if is_new else "wake", was, task=number)

    def did_preempt(self, rq, task, _before, _result, was):
        if self.open and self.open["op"] in ("wake", "new"):
            if self.pending and not was:
                self.open["then"]["resched"] = True
            self.note_tasks(self.open, self.reader.rq(rq))

    def did_leave(self, rq, task, before, _result, was):
        if self.period is None:
            return
        state = self.reader.state(task)
        if task != before[0]["curr"] or not state:
            self.saved = task  # its attributes change, and it joins again at once
            return
        self.event(rq, "exit" if state & 0x80 else "block", was)

    def did_tick(self, rq, _task, _before, _result, was):
        if self.period:
            self.event(rq, "tick", was)

    def did_yield(self, rq, _task, _before, _result, was):
        if self.period:
            self.event(rq, "yield", was)

    def did_pick(self, rq, _task, before, result, _was):
        self.pending = False
        if self.period is None:
            return
        if before[0]["curr"] not in (before[0]["idle"], *self.period.tasks):
            return self.cut()  # a task of another class ran in between
        if result and result not in self.period.tasks:
            return self.cut()
        self.event(rq, "pick", False)
        if self.period is None:
            return
        self.open["then"] = {"runs": self.period.tasks.get(result, 0), **self.open["then"]}
        if not result:
            self.cut()

    def changed(self, rq, task, was):
        read, number = self.reader.task(task), self.period.tasks[task]
        given = read["slice"] if read["custom_slice"] else self.slice
        new = {"slice": given, "weight": read["weight"]}
        old = {"slice": self.period.slices[task], "weight": self.period.weights[task]}
        different = [name for name in new if new[name] != old[name]]
        if len(different) != 1:
            return self.cut()
        self.period.slices[task], self.period.weights[task] = new["slice"], new["weight"]
        self.event(rq, different[0], was, task=number, **{different[0]: new[different[0]]})


def properties(events, is_eevdf):
    """Which properties a history tests, by what happens in it."""
    ops = {event["op"] for event in events}
    found = ["charge", "pick"]
    if is_eevdf:
        found += ["mean", "eligible", "deadline"]
    found += [op for op in ("new", "yield", "weight", "slice") if op in ops]
    joins = [event["then"] for event in events[1:] if event["op"] in ("wake", "new")]
    if any(len(then.get("tasks", ())) > 1 for then in joins):
        found += ["place"]
    if any("resched" in then for then in joins):
        found += ["preempt"]
    if any("resched" in event["then"] for event in events if event["op"] == "tick"):
        found += ["tick"]
    if is_eevdf and stays(events):
        found += ["delay"]
    return found


def stays(events):
    """Whether a task sleeps and is in the queue all the same."""
    runs = 0
    for event in events:
        runs = event["then"].get("runs", runs)
        if event["op"] == "block" and any(row["task"] == runs for row in event["then"].get("tasks", ())):
            return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel")
    parser.add_argument("name")
    parser.add_argument("scenarios", nargs="*", type=Path)
    parser.add_argument("-o", metavar="DIR", default=HERE.parent / "vectors", type=Path)
    parser.add_argument("--stale", action="store_true", help="go on where the kernel's min_slice is wrong")
    given = parser.parse_intermixed_args()
    for program, package in (("qemu-system-x86_64", "qemu-system-x86"), ("cpio", "cpio"), ("gcc", "gcc")):
        shutil.which(program) or missing(f"{program} is missing; install it with: apt-get install {package}")
    for scenario in given.scenarios:
        scenario.is_file() or btf.unusable(f"{scenario}: no such file; give one as in {HERE.name}/scenarios")
    given.scenarios = given.scenarios or sorted((HERE / "scenarios").glob("*.txt"))
    with tempfile.TemporaryDirectory() as work:
        kernel = Kernel(given.kernel, Path(work))
        for scenario in given.scenarios:
            capture = Capture(kernel, scenario.read_text(), given.stale)
            capture.run()
            write(kernel, given, scenario, capture)


def write(kernel, given, scenario, capture):
    """The longest busy period of the scenario."""
    period = max(capture.periods, key=lambda period: len(period.events))
    is_eevdf = capture.reader.is_eevdf
    header = {
        "format": 1,
        "name": f"{given.name}/{scenario.stem}",
        "kind": "history",
        "claims": f"{given.name}-{'eevdf' if is_eevdf else 'cfs'}",
        "properties": properties(period.events, is_eevdf),
        "source": f"Linux {kernel.release}, image {kernel.sha256[:16]}, scenario {scenario.name}",
        "tolerance": 1000,
    }
    lines = [header, {"at": 0, "op": "reset", "tick": 4000000, "slice": capture.slice}]
    lines += [*period.declared, *period.events]
    out = given.o / given.name
    out.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (out / f"{scenario.stem}.jsonl").write_text(text)
    stale = f", {capture.stale} times the tree's min_slice was not the least slice" if capture.stale else ""
    print(f"{header['name']}: {len(period.events)} events, {capture.checked} sums agree{stale}")


if __name__ == "__main__":
    main()
