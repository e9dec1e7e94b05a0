//! Where a job runs: a process of its own, so that whatever its tasks do ends with it.
//!
//! All tasks are made first and wait at a gate, so that nothing that is measured begins before they are there.

use crate::program::Program;
use crate::shared::{KINDS, Shared};
use crate::task::{self, Failure};
use crate::tracing::Tracing;
use crate::{clock, sync};
use schedlab_runner::event::{Event, TaskResult};
use schedlab_runner::session::{Job, Windows};
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// A job while it runs.
pub struct Stage {
    /// What its tasks do.
    pub program: Program,
    /// What they share.
    pub shared: Shared,
    /// The samples that are wanted.
    pub windows: Option<Windows>,
    /// The ends of each pipe: to read, to write.
    pub pipes: Vec<(i32, i32)>,
    /// The files that stand for devices.
    pub files: Vec<DeviceFile>,
}

/// Runs a job and reports it. Called in a process of its own.
pub fn run(number: usize, job: &Job, report: &dyn Fn(&Event)) -> Result<(), String> {
    let stage: &'static Stage = Box::leak(Box::new(Stage::new(job)?));
    clock::calibrate();
    let tracing = job.trace.then(Tracing::prepare).transpose()?;
    stage.prepare()?;
    report(&Event::JobStart { job: number, name: job.name.clone(), ns: clock::now() });
    tracing.as_ref().map_or(Ok(()), Tracing::start)?;
    stage.open_gate();
    stage.wait_until_done();
    tracing.as_ref().map_or(Ok(()), Tracing::stop)?;
    let end = stage.end(number);
    stage.failure()?;
    stage.samples(number).iter().for_each(report);
    if let Some(tracing) = tracing {
        match tracing.lost()? {
            0 => {}
            events => report(&Event::TraceLost { job: number, events }),
        }
        tracing.lines(|line| report(&Event::Trace { job: number, line: line.to_string() }))?;
    }
    report(&end);
    Ok(())
}

impl Stage {
    fn new(job: &Job) -> Result<Stage, String> {
        let program = Program::new(&job.workload, job.class)?;
        let shared = Shared::new(&program, job.windows.map_or(0, |windows| windows.count as usize + 1));
        let pipes = program.pipes.iter().map(|&capacity| pipe(capacity)).collect::<Result<_, _>>()?;
        let files = program.files.iter().map(|name| DeviceFile::create(name)).collect::<Result<_, _>>()?;
        Ok(Stage { program, shared, windows: job.windows, pipes, files })
    }

    /// Makes the tasks and waits until they are all at the gate.
    fn prepare(&'static self) -> Result<(), String> {
        // SAFETY: ended children leave no zombies behind; nobody waits for them by `wait`.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        let mut made = 0;
        for (index, template) in self.program.templates.iter().enumerate().filter(|(_, template)| !template.forked) {
            for number in 0..template.count {
                self.shared.families[index].alive.fetch_add(1, SeqCst);
                self.shared.families[index].begun.fetch_add(1, SeqCst);
                if !template.daemon {
                    self.shared.board.remaining.fetch_add(1, SeqCst);
                }
                self.begin(template.first + number, true);
                made += 1;
            }
        }
        let board = self.shared.board;
        loop {
            self.failure()?;
            match board.ready.load(SeqCst) {
                ready if ready == made => return Ok(()),
                ready => sync::wait(&board.ready, ready, None),
            }
        }
    }

    /// Starts instance `number` as a thread or a process.
    fn begin(&'static self, number: usize, waits_at_gate: bool) {
        const STACK: usize = 64 << 10;
        let template = self.program.template_of(number);
        if template.process {
            // SAFETY: the child goes through its ops, which use system calls and memory that is there already, and leaves without running anything else.
            match unsafe { libc::fork() } {
                -1 => self.fail(Failure::Begin),
                0 => {
                    let name = std::ffi::CString::new(template.name.as_str()).unwrap_or_default();
                    // SAFETY: the name is a string with an end; `_exit` does not return.
                    unsafe {
                        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
                        task::run(self, number, waits_at_gate);
                        libc::_exit(0)
                    }
                }
                _ => {}
            }
        } else {
            let thread = std::thread::Builder::new().name(template.name.clone()).stack_size(STACK);
            if thread.spawn(move || task::run(self, number, waits_at_gate)).is_err() {
                self.fail(Failure::Begin);
            }
        }
    }

    /// Begins the next instance of a template.
    pub fn fork(&'static self, template: usize) {
        let family = &self.shared.families[template];
        let number = family.begun.fetch_add(1, SeqCst) as usize;
        let template = &self.program.templates[template];
        if number >= template.count {
            return self.fail(Failure::TooMany);
        }
        family.alive.fetch_add(1, SeqCst);
        if !template.daemon {
            self.shared.board.remaining.fetch_add(1, SeqCst);
        }
        self.begin(template.first + number, false);
    }

    /// Waits until a template has no instance left.
    pub fn join(&self, template: usize) {
        let alive = &self.shared.families[template].alive;
        loop {
            match alive.load(SeqCst) {
                0 => return,
                count => sync::wait(alive, count, None),
            }
        }
    }

    fn open_gate(&self) {
        let board = self.shared.board;
        board.begin_monotonic.store(clock::read(libc::CLOCK_MONOTONIC), SeqCst);
        board.begin_ns.store(clock::now(), SeqCst);
        board.gate.store(1, SeqCst);
        sync::wake(&board.gate, sync::ALL);
    }

    /// When the gate was opened, on `CLOCK_MONOTONIC`.
    pub fn monotonic_begin(&self) -> u64 {
        self.shared.board.begin_monotonic.load(Relaxed)
    }

    /// The job is over.
    pub fn finish(&self) {
        let board = self.shared.board;
        board.end_ns.store(clock::now(), SeqCst);
        board.done.store(1, SeqCst);
        sync::wake(&board.done, sync::ALL);
    }

    fn wait_until_done(&self) {
        let board = self.shared.board;
        let end = self.program.duration.map(|duration| self.monotonic_begin() + duration);
        while board.done.load(SeqCst) == 0 {
            let left = end.map(|end| end.saturating_sub(clock::read(libc::CLOCK_MONOTONIC)));
            if left == Some(0) {
                return self.finish();
            }
            sync::wait(&board.done, 0, left.map(Duration::from_nanos));
        }
    }

    /// A task cannot go on, and so neither can the job.
    pub fn fail(&self, failure: Failure) {
        let board = self.shared.board;
        board.error.store(io::Error::last_os_error().raw_os_error().unwrap_or(0).cast_unsigned(), SeqCst);
        board.failure.store(failure as u32, SeqCst);
        sync::wake(&board.ready, sync::ALL);
        self.finish();
        loop {
            // SAFETY: it has no arguments. The job's process ends soon, and this task with it.
            unsafe { libc::pause() };
        }
    }

    /// The failure of a task as a message.
    fn failure(&self) -> Result<(), String> {
        let board = self.shared.board;
        let what = match board.failure.load(SeqCst) {
            0 => return Ok(()),
            1 => "the kernel refuses the scheduling class, the nice value or the slice that a task asks for",
            2 => "the kernel refuses the CPUs that a task asks for",
            3 => "a task cannot be made",
            4 => "a task was to be forked more often than its count says",
            5 => "a pipe cannot be used",
            _ => "a file cannot be used",
        };
        let error = io::Error::from_raw_os_error(board.error.load(SeqCst).cast_signed());
        Err(format!("{what}: {error}"))
    }

    /// The windows between the readings.
    fn samples(&self, job: usize) -> Vec<Event> {
        let windows = self.shared.readings.windows(2);
        let taken = windows.take_while(|pair| pair[1].end_ns.load(SeqCst) > 0);
        let sample = |pair: &[crate::shared::Reading]| Event::Sample {
            job,
            ns: pair[1].end_ns.load(SeqCst) - pair[0].begin_ns.load(SeqCst),
            operations: pair[1].operations.load(SeqCst) - pair[0].operations.load(SeqCst),
        };
        taken.map(sample).collect()
    }

    fn end(&self, job: usize) -> Event {
        let board = self.shared.board;
        let begin = board.begin_ns.load(SeqCst);
        let results = self.shared.instances.iter().enumerate().filter(|(_, instance)| instance.tid.load(SeqCst) > 0);
        let result = |(number, instance): (usize, &crate::shared::Instance)| {
            let template = self.program.template_of(number);
            let tid = instance.tid.load(SeqCst);
            let ended = instance.ended_ns.load(SeqCst);
            let counts = KINDS.iter().zip(&instance.counts).map(|(kind, count)| (kind.to_string(), count.load(SeqCst)));
            TaskResult {
                name: template.name.clone(),
                cpu_ns: if ended > 0 { instance.cpu_ns.load(SeqCst) } else { clock::cpu_of(tid, template.process) },
                ended_ns: (ended > 0).then(|| ended.saturating_sub(begin)),
                operations: counts.filter(|&(_, count)| count > 0).collect(),
                tid,
            }
        };
        Event::JobEnd { job, ns: board.end_ns.load(SeqCst) - begin, tasks: results.map(result).collect() }
    }
}

fn pipe(capacity: u64) -> Result<(i32, i32), String> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers.
    let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == 0;
    // SAFETY: it takes a number only.
    if !made || unsafe { libc::fcntl(ends[1], libc::F_SETPIPE_SZ, capacity.min(1 << 20) as i32) } < 0 {
        return Err(format!("a pipe of {capacity} bytes cannot be made: {}", io::Error::last_os_error()));
    }
    Ok((ends[0], ends[1]))
}

/// A file that stands for a device: read and written from begin to end, again and again.
pub struct DeviceFile {
    file: std::fs::File,
    position: AtomicU64,
}

impl DeviceFile {
    const SIZE: u64 = 1 << 20;

    fn create(name: &str) -> Result<DeviceFile, String> {
        let path = std::env::temp_dir().join(format!("schedlab-{}-{}", std::process::id(), name.replace('/', "-")));
        let open = || {
            let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            io::Write::write_all(&mut &file, &vec![0; DeviceFile::SIZE as usize])?;
            Ok(file)
        };
        let file = open().map_err(|error: io::Error| format!("{}: {error}; set TMPDIR to where a file can be made", path.display()))?;
        Ok(DeviceFile { file, position: AtomicU64::new(0) })
    }

    /// Reads or writes as many bytes as `buffer` has.
    pub fn transfer(&self, stage: &Stage, buffer: &mut [u8], write: bool) {
        use std::os::unix::fs::FileExt;
        let at = self.position.fetch_add(buffer.len() as u64, Relaxed) % (DeviceFile::SIZE - buffer.len() as u64).max(1);
        let done = if write { self.file.write_all_at(buffer, at) } else { self.file.read_exact_at(buffer, at) };
        if done.is_err() {
            stage.fail(Failure::File);
        }
    }
}
