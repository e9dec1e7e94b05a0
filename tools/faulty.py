"""One cell of the table of faults: a command, what befalls it, and what is left (tools/faults).

A cell has a box: a folder with the command's folder, its TMPDIR, its HOME and its cache. Processes
that lose their parents become children of this one, so that none is overlooked.
"""

import csv
import ctypes
import fcntl
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

GRACE_S = 10  # Until a guard has done its work.
CODES = {0, 2, 3, 4, 5, 6, 77}  # Documented; 1 is an internal error.
UNFINISHED = "UNFINISHED"  # Says that a folder of results is not complete.
SETTINGS = [
    "/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us", "/proc/sys/kernel/perf_event_paranoid", "/proc/sys/kernel/kptr_restrict",
    "/proc/sys/kernel/sched_schedstats", "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/nmi_watchdog", "/sys/kernel/sched_ext/state", "/sys/kernel/tracing/tracing_on",
    "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
]
# Where a program may leave something although TMPDIR says otherwise: looked at where they are nobody else's.
SHARED = []
SCRATCH = "schedlab-scratch-"
BOX = "faults-"

libc = ctypes.CDLL(None, use_errno=True)
PR_SET_CHILD_SUBREAPER = 36


def adopt():
    """Orphans become children of this process."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True, capture_output=True)


def shield(*used):
    """Empty temporary folders that nobody else has, except one that has what is used. Needs mounts of its own."""
    for place in ("/tmp", "/var/tmp", "/dev/shm"):
        if Path(place).is_dir() and not any(Path(path).resolve().is_relative_to(place) for path in used):
            mount("-t", "tmpfs", "none", place)
            SHARED.append(place)


def descendants(pid=None):
    """The living processes below one, oldest first, as (pid, name)."""
    below, parents = [], {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, rest = (entry / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
                words = (entry / "cmdline").read_text().split("\0")
                # Guards and runners are one program.
                if len(words) > 1 and words[1].strip("-").isalpha():
                    name += " " + words[1]
            except (OSError, IndexError):
                continue
            state, parent = rest.split()[:2]
            if state not in "ZX":
                parents.setdefault(int(parent), []).append((int(entry.name), name))
    todo = [pid or os.getpid()]
    while todo:
        for child in sorted(parents.get(todo.pop(0), [])):
            below.append(child)
            todo.append(child[0])
    return below


def files_of(folder):
    """The files below a folder, by name."""
    found = {}
    for path in sorted(folder.rglob("*")):
        try:
            if path.is_file():
                found[str(path.relative_to(folder))] = path.read_bytes()
        except FileNotFoundError:
            pass  # A temporary one.
    return found


def settings():
    def read(path):
        try:
            return Path(path).read_text()
        except OSError:
            return None

    return {path: read(path) for path in SETTINGS}


def shared():
    return {str(entry) for place in SHARED for entry in Path(place).iterdir() if not entry.name.startswith(BOX)}


def invalid(name, data):
    """Why a file is no complete one of its kind."""
    if not data:
        return "is empty"
    try:
        if name.endswith(".json"):
            json.loads(data)
        elif name.endswith(".csv"):
            rows = list(csv.reader(io.StringIO(data.decode())))
            if not data.endswith(b"\n") or len({len(row) for row in rows}) != 1:
                return "has a line that is cut off"
        elif name.endswith(".parquet") and not (data[:4] == data[-4:] == b"PAR1" and len(data) > 8):
            return "has no end"
        elif name.endswith(".html") and not data.rstrip().endswith((b"</html>", b"</script>")):
            return "has no end"
    except ValueError as error:
        return f"cannot be read: {error}"
    return None


class Box:
    """The folders of a cell, on a small disk if it has a size in bytes."""

    def __init__(self, command, size=None):
        self.command, self.root = command, Path(tempfile.mkdtemp(prefix=BOX))
        self.mounted = size is not None
        if self.mounted:
            mount("-t", "tmpfs", "-o", f"size={size}", "none", self.root)
        for name in ("work", "tmp", "home", "cache"):
            (self.root / name).mkdir()
        self.work = self.root / "work"
        for name, text in command.files.items():
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).write_text(text)
        self.given = set(files_of(self.work)) | {"."}

    def environment(self):
        own = {"TMPDIR": self.root / "tmp", "HOME": self.root / "home", "XDG_CACHE_HOME": self.root / "cache", "LC_ALL": "C", "NO_COLOR": "1", "RUST_BACKTRACE": "0"}
        for name in self.command.keeps:
            own.pop(name)
        return {**os.environ, **{name: str(value) for name, value in own.items()}}

    def used(self):
        place = os.statvfs(self.root)
        return (place.f_blocks - place.f_bfree) * place.f_frsize

    def results(self):
        return {name: data for name, data in files_of(self.work).items() if name not in self.given}

    def unmount(self):
        if self.mounted:
            libc.umount2(str(self.root).encode(), 2)
            self.mounted = False

    def remove(self):
        self.unmount()
        shutil.rmtree(self.root, ignore_errors=True)


class Run:
    """One start of the command in a box."""

    def __init__(self, box, words=None, stdout=None, limit=None, full=False):
        def prepare():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            if limit is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        self.box, self.out, self.err, self.readers, self.stuffing = box, b"", b"", [], [0, 0]
        self.pipes = [os.pipe(), os.pipe()]
        if full:
            self.stuffing = [self._stuff(end) for _, end in self.pipes]
        self.begun = time.monotonic()
        self.child = subprocess.Popen(
            list(map(str, words or box.command.words)), cwd=box.work, env=box.environment(), stdin=subprocess.DEVNULL, process_group=0, preexec_fn=prepare,
            stdout=self.pipes[0][1] if stdout is None else stdout, stderr=self.pipes[1][1], restore_signals=False,
        )
        for _, end in self.pipes:
            os.close(end)
        if not full:
            self.read()

    @staticmethod
    def _stuff(end):
        """Fills a pipe, which is as small as can be."""
        size = fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
        return os.write(end, b"." * size)

    def read(self):
        def drain(which, stuffing):
            parts, end = [], self.pipes[which][0]
            try:
                while part := os.read(end, 1 << 16):
                    parts.append(part)
            except OSError:
                pass  # The reader went away.
            setattr(self, ("out", "err")[which], b"".join(parts)[stuffing:])

        for which in (0, 1):
            if which == 0 and self.readers == ["gone"]:
                continue
            self.readers.append(threading.Thread(target=drain, args=(which, self.stuffing[which]), daemon=True))
            self.readers[-1].start()

    def wait_for(self, seconds):
        """Until so long after the start; false if the command is over."""
        try:
            self.child.wait(max(0.0, self.begun + seconds - time.monotonic()))
            return False
        except subprocess.TimeoutExpired:
            return True

    def signal(self, number, group=False):
        if self.child.poll() is None:
            (os.killpg if group else os.kill)(self.child.pid, number)

    def end(self, patience):
        """The exit code; none if it hangs. The negative number of a signal that ended it."""
        try:
            code = self.child.wait(patience)
        except subprocess.TimeoutExpired:
            code = None
        self.seconds = time.monotonic() - self.begun
        return code

    def close(self):
        """After all that could write to the pipes is gone."""
        for reader in self.readers:
            if reader != "gone":
                reader.join(5)

    def said(self):
        return self.err.decode(errors="replace").strip()


def end_all():
    """Ends every process below this one, and gives their names."""
    names = []
    for _ in range(50):
        living = descendants()
        if not living:
            break
        names += [name for _, name in living if name not in names]
        for pid, _ in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    reap()
    return names


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def until(holds):
    end = time.monotonic() + GRACE_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Undisturbed:
    """What the command does when it is left alone: twice, to know which bytes are the same each time."""

    def __init__(self, command, is_root):
        runs = []
        for _ in (0, 1):
            box = Box(command, 1 << 30 if is_root else None)
            try:
                self.before = box.used()
                self.peak, self.names = self.before, []
                run = Run(box)
                while run.wait_for(time.monotonic() - run.begun + 0.005):
                    self.peak = max(self.peak, box.used()) if is_root else 0
                    for _, name in descendants(run.child.pid):
                        if name not in self.names:
                            self.names.append(name)
                code = run.end(600)
                until(lambda: not descendants())
                run.close()
                self.peak = max(self.peak, box.used())
                runs.append((run, box.results(), files_of(box.root / "tmp"), end_all()))
                if code != 0:
                    raise Unusable(code, run.said())
            finally:
                box.remove()
        self.calls = None
        (first, self.files, temporary, orphans), (second, again, *_) = runs
        self.seconds = min(first.seconds, second.seconds)
        self.out = first.out
        self.same_out = first.out == second.out
        self.same = {name for name, data in self.files.items() if again.get(name) == data}
        self.wrong = [f"leaves {name} running" for name in orphans] + [f"leaves {name} in TMPDIR" for name in temporary]
        if command.exact:
            self.wrong += [f"{name} differs from run to run" for name in sorted(set(self.files) ^ set(again) | set(self.files) - self.same) if not command.keeps_state(name)]
            self.wrong += [] if self.same_out else ["standard output differs from run to run"]


class Unusable(Exception):
    """The command does not even work undisturbed: (exit code, message)."""


class Cell:
    """A command and one fault at one moment. `complaints` has what must not be."""

    def __init__(self, command, usual, moment, number, size=None):
        self.command, self.usual, self.moment, self.number = command, usual, moment, number
        self.complaints = []
        self.settings, self.shared = settings(), shared()
        self.box = Box(command, size)
        self.runs = []

    def start(self, **how):
        self.runs.append(Run(self.box, **how))
        return self.runs[-1]

    def at_the_moment(self):
        return self.runs[-1].wait_for(self.moment * self.usual.seconds)

    def end(self, *codes, silent=False):
        """Waits, and holds the exit code to what is expected; 0 is an answer, and must be one."""
        for run in self.runs:
            code = run.end(60 + 20 * self.usual.seconds)
            if code is None:
                self.complaints.append(f"hangs; alive: {', '.join(name for _, name in descendants())}")
                run.child.kill()
                run.child.wait()

        def is_quiet():
            reap_orphans(self.runs)
            return not descendants()

        until(is_quiet)
        orphans = end_all()
        self.complaints += [f"leaves {name} running" for name in orphans]
        for run in self.runs:
            run.close()
            code = run.child.returncode
            if code not in {0, *codes, *self.command.failures}:
                self.complaints.append(f"exit code {code}: {run.said()[-300:]}")
            elif code and code > 0 and not silent and not run.said():
                self.complaints.append(f"exit code {code} without a message")
            if "panicked at" in run.said():
                self.complaints.append(f"panics: {run.said()[-300:]}")
        self._settings()
        return [run.child.returncode for run in self.runs]

    def _settings(self):
        def changed():
            now = settings()
            return [(path, value, now[path]) for path, value in self.settings.items() if value != now[path]]

        if not until(lambda: not changed()):
            for path, before, now in changed():
                self.complaints.append(f"{path} is {str(now).strip()}, was {str(before).strip()}")
                if before is not None:
                    try:
                        Path(path).write_text(before)
                    except OSError:
                        pass

    def hold(self, codes, is_next=True):
        """Results are absent, or complete and valid; nothing temporary is left, after SIGKILL that of the next start."""
        found = self.box.results()
        whole = bool(codes) and all(code == 0 for code in codes)
        for name, data in found.items():
            if Path(name).name == UNFINISHED or self.command.keeps_state(name):
                continue
            if not is_next and Path(name).parts[0].startswith(SCRATCH):
                continue
            if name not in self.usual.files:
                self.complaints.append(f"leaves {name}")
            elif self.command.exact and data == self.usual.files[name]:
                continue
            elif why := invalid(name, data) or self.command.check(self.box, name):
                self.complaints.append(f"{name} {why}")
            elif self.command.exact and not self._says_what_it_lacks(found, Path(name).parts[0]):
                self.complaints.append(f"{name} is valid, but not what an undisturbed run writes")
        if whole:
            missing = [name for name in self.usual.files if name not in found and not self.command.keeps_state(name)]
            self.complaints += [f"exit code 0 without {name}" for name in missing]
            self.complaints += [f"exit code 0 with {name}" for name in found if Path(name).name == UNFINISHED]
        if is_next:
            self.tidy()

    def _says_what_it_lacks(self, found, folder):
        """Whether a folder is marked as unfinished, or each of its rows that differs has a reason instead of a value."""
        if f"{folder}/{UNFINISHED}" in found:
            return True
        rows, usual = ([*csv.DictReader(io.StringIO(of.get(f"{folder}/results.csv", b"").decode()))] for of in (found, self.usual.files))
        other = [row for row in rows if row not in usual]
        return bool(other) and all(row.get("value") == "" and row.get("note") for row in other if "value" in row)

    def same_output(self, run):
        if self.command.exact and run.child.returncode == 0 and run.out != self.usual.out:
            self.complaints.append("standard output is not that of an undisturbed run")

    def tidy(self):
        self.complaints += [f"leaves {name} in TMPDIR" for name in sorted(os.listdir(self.box.root / "tmp"))]
        for place in ("cache", "home"):
            self.complaints += [f"leaves {name} in {place}" for name in files_of(self.box.root / place) if any(word in name for word in (".tmp", "scratch", ".unfinished"))]
        self.complaints += [f"leaves {path}" for path in sorted(shared() - self.shared)]

    def again(self):
        """The same command afterwards gives what an undisturbed one gives."""
        for words in (self.command.again, self.command.words):
            if words:
                run = Run(self.box, words)
                code = run.end(60 + 20 * self.usual.seconds)
                run.close()
                if code == 0:
                    break
        if code != 0:
            self.complaints.append(f"afterwards it cannot be run: exit code {code}: {run.said()[-300:]}")
            return
        before = len(self.complaints)
        self.runs = [run]
        self.hold([0])
        self.same_output(run)
        self.complaints[before:] = [f"run again, {complaint}" for complaint in self.complaints[before:]]
        self.complaints += [f"run again, leaves {name} running" for name in end_all()]

    def close(self):
        end_all()
        self.box.remove()


def reap_orphans(runs):
    """Takes the exit codes of processes that this one adopted, and leaves those of its own."""
    own = {run.child.pid for run in runs}
    for entry in Path("/proc/self/task").iterdir():
        try:
            children = (entry / "children").read_text().split()
        except OSError:
            continue
        for pid in map(int, children):
            if pid not in own:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass
