//! Where a job runs: a process of its own, so that whatever its tasks do ends with it.
//!
//! All tasks are made first and wait at a gate, so that nothing that is measured begins before they are there.

use crate::clock::Tick;
use crate::program::{Program, Template};
use crate::service::Service;
use crate::shared::{Instance, KINDS, Places, Shared};
use crate::task::{self, Failure};
use crate::tracing::Tracing;
use crate::usage::{self, Migrations, Usage};
use crate::{cgroups, clock, guest, sync};
use schedlab_runner::event::{Event, TaskResult};
use schedlab_runner::session::{Host, Job, Windows};
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

/// A job while it runs.
pub struct Stage {
    /// The job's number.
    pub number: usize,
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
    /// Whether tasks add up what they used, which is not asked for in a guest.
    pub tells_usage: bool,
    /// Whether each task also tells its run delay, which costs it some microseconds: only where there are few.
    pub is_detailed: bool,
    /// Where forked tasks keep what they came to.
    places: Places,
}

/// More tasks are told of by their sums.
const FEW: usize = 4096;
/// Who is at the gate may still have to fall asleep there, where the scheduler prefers this task as soon as it is called.
const ARRIVAL: Duration = Duration::from_millis(20);
/// How a message begins that is about the class.
pub const REFUSED_CLASS: &str = "the kernel refuses the scheduling class, the nice value or the slice that a task asks for";

/// Runs a job and reports it. Called in a process of its own.
pub fn run(number: usize, job: &Job, host: Option<&Host>, services: &[Service], report: &dyn Fn(&Event)) -> Result<(), String> {
    cgroups::make(number, &job.workload.cgroups.values().copied().collect::<Vec<_>>())?;
    let stage: &'static Stage = Box::leak(Box::new(Stage::new(number, job, host)?));
    clock::calibrate();
    if guest::is_guest() {
        guest::wake_in_time();
    }
    // Whoever has to wait meanwhile has had its turn when all tasks are at the gate.
    if let Some(Tick { ns, took_ns }) = (guest::has_one_cpu() && job.windows.is_none()).then(clock::tick).flatten() {
        report(&Event::Tick { job: number, ns, took_ns });
    }
    let migrations = if stage.is_detailed { Migrations::count() } else { None };
    let tracing = job.trace.then(Tracing::prepare).transpose()?;
    stage.prepare()?;
    if guest::is_guest() {
        std::thread::sleep(ARRIVAL);
    }
    report(&Event::JobStart { job: number, name: job.name.clone(), ns: clock::now() });
    tracing.as_ref().map_or(Ok(()), Tracing::start)?;
    let before = Usage::of_process();
    services.iter().for_each(Service::announce_job);
    stage.open_gate();
    stage.wait_until_done();
    let used = stage.shared.used.with(Usage::of_process().since(before));
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
    if stage.tells_usage {
        report(&stage.usage(number, used, migrations.as_ref()));
    }
    report(&end);
    Ok(())
}

impl Stage {
    fn new(number: usize, job: &Job, host: Option<&Host>) -> Result<Stage, String> {
        let program = Program::new(&job.workload, job.class, host.map_or(0, |host| host.nice))?;
        let tells_usage = host.is_some();
        let places = if tells_usage && program.instances > FEW { Places::GivenBack } else { Places::Kept };
        let shared = Shared::new(&program, job.windows.map_or(0, |windows| windows.count as usize + 1), places);
        let pipes = program.pipes.iter().map(|&capacity| pipe(capacity)).collect::<Result<_, _>>()?;
        let files = program.files.iter().map(|name| DeviceFile::create(name)).collect::<Result<_, _>>()?;
        let is_detailed = host.is_some_and(|host| !host.bare) && program.instances <= FEW;
        Ok(Stage { number, program, shared, windows: job.windows, pipes, files, tells_usage, is_detailed, places })
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
        let template = self.program.template_of(number);
        if template.process {
            // SAFETY: the child goes through its ops, which use system calls and memory that is there already, and leaves without running anything else.
            match unsafe { libc::fork() } {
                -1 => self.fail(Failure::Begin),
                0 => {
                    task::run(self, number, waits_at_gate);
                    // SAFETY: it does not return.
                    unsafe { libc::_exit(0) }
                }
                _ => {}
            }
        } else if !start_thread(Begun { stage: self, number, waits_at_gate }) {
            self.fail(Failure::Begin);
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
        let place = if self.places == Places::Kept { number } else { family.take_place(self.places_of(template)) };
        family.alive.fetch_add(1, SeqCst);
        if !template.daemon {
            self.shared.board.remaining.fetch_add(1, SeqCst);
        }
        self.begin(template.first + place, false);
    }

    /// Where the instances of a template keep what they came to.
    fn places_of(&self, template: &Template) -> &'static [Instance] {
        &self.shared.instances[template.first..template.first + template.count]
    }

    /// Instance `number` has ended, and looks at its place no more.
    pub fn leave_place(&self, number: usize, template: &Template) {
        if self.places == Places::GivenBack && template.forked {
            self.shared.families[self.program.index_of(number)].give_back(number - template.first, self.places_of(template));
        }
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

    /// A job that says how long it takes may take longer than a guest's watchdog waits for a report.
    fn wait_until_done(&self) {
        let board = self.shared.board;
        let end = self.program.duration.map(|duration| self.monotonic_begin() + duration);
        let mut has_waited = false;
        while board.done.load(SeqCst) == 0 {
            let left = end.map(|end| Duration::from_nanos(end.saturating_sub(clock::read(libc::CLOCK_MONOTONIC))));
            if left == Some(Duration::ZERO) {
                return self.finish();
            }
            if guest::is_guest() && has_waited && left.is_some() {
                guest::reassure();
            }
            sync::wait(&board.done, 0, left.map(|left| left.min(guest::patience())));
            has_waited = true;
        }
    }

    /// A task goes on if it can.
    pub fn expect(&self, can: bool, or: Failure) {
        if !can {
            self.fail(or);
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
            1 => REFUSED_CLASS,
            2 => "the kernel refuses the CPUs that a task asks for",
            3 => "a task cannot be made",
            4 => "a task was to be forked more often than its count says",
            8 => "a task cannot be put into its control group",
            5 => "a pipe cannot be used",
            7 => {
                "a mutex that lets its holder inherit cannot be taken: the tasks wait for each other, or the kernel has no CONFIG_FUTEX_PI"
            }
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

    fn usage(&self, job: usize, used: Usage, migrations: Option<&Migrations>) -> Event {
        // Of the tasks that are still alive nobody has told.
        let alive =
            self.shared.instances.iter().filter(|instance| instance.ended_ns.load(SeqCst) == 0).map(|instance| instance.tid.load(SeqCst));
        let waited = || alive.filter(|&tid| tid > 0).filter_map(|tid| usage::run_delay(&tid.to_string())).sum::<u64>();
        let is_kept = self.is_detailed && usage::run_delay("thread-self").is_some();
        Event::Usage {
            job,
            pid: std::process::id(),
            user_ns: used.user_ns,
            system_ns: used.system_ns,
            voluntary: used.voluntary,
            involuntary: used.involuntary,
            migrations: migrations.and_then(Migrations::read),
            run_delay_ns: is_kept.then(|| self.shared.used.run_delay_ns.load(SeqCst) + waited()),
        }
    }

    fn end(&self, job: usize) -> Event {
        let begin = self.shared.board.begin_ns.load(SeqCst);
        let results = self.program.templates.iter().flat_map(|template| self.results(template, begin)).collect();
        Event::JobEnd { job, ns: self.shared.board.end_ns.load(SeqCst) - begin, tasks: results }
    }

    /// What each task of a template came to; on a machine that is no guest the sum, if there are many.
    fn results(&self, template: &Template, begin: u64) -> Vec<TaskResult> {
        let mut instances = self.places_of(template);
        let mut results: Vec<TaskResult> = Vec::new();
        if self.places == Places::GivenBack && template.forked {
            let family = &self.shared.families[self.program.index_of(template.first)];
            instances = &instances[..family.places.load(SeqCst) as usize];
            let tasks = family.ended.load(SeqCst);
            results.extend((tasks > 0).then(|| TaskResult { tasks, ..result(template, &family.sum, begin) }));
        }
        for instance in instances.iter().filter(|instance| instance.tid.load(SeqCst) > 0) {
            let result = result(template, instance, begin);
            match results.last_mut().filter(|_| self.places == Places::GivenBack) {
                Some(sum) => add(sum, &result),
                None => results.push(result),
            }
        }
        results
    }
}

/// What a thread is told.
struct Begun {
    stage: &'static Stage,
    number: usize,
    waits_at_gate: bool,
}

/// Starts a thread that nobody waits for; false if the kernel refuses. Those of the standard library map memory for a second stack each, which costs as much again as a thread.
fn start_thread(begun: Begun) -> bool {
    const STACK: usize = 64 << 10;
    extern "C" fn run(begun: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: it was made of a box, for this thread alone.
        let Begun { stage, number, waits_at_gate } = *unsafe { Box::from_raw(begun.cast::<Begun>()) };
        task::run(stage, number, waits_at_gate);
        std::ptr::null_mut()
    }
    let begun = Box::into_raw(Box::new(begun));
    // SAFETY: attributes are initialised before use; the thread has the box if there is a thread, and else it is taken back.
    unsafe {
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, STACK);
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut thread = std::mem::zeroed();
        let error = libc::pthread_create(&raw mut thread, &raw const attributes, run, begun.cast());
        libc::pthread_attr_destroy(&raw mut attributes);
        if error != 0 {
            drop(Box::from_raw(begun));
            *libc::__errno_location() = error;
        }
        error == 0
    }
}

fn result(template: &Template, instance: &Instance, begin: u64) -> TaskResult {
    let tid = instance.tid.load(SeqCst);
    let (began, ended) = (instance.began_ns.load(SeqCst), instance.ended_ns.load(SeqCst));
    let counts = KINDS.iter().zip(&instance.counts).map(|(kind, count)| (kind.to_string(), count.load(SeqCst)));
    TaskResult {
        name: template.name.clone(),
        tasks: 1,
        cpu_ns: if ended > 0 { instance.cpu_ns.load(SeqCst) } else { clock::cpu_of(tid, template.process) },
        began_ns: (began > 0).then(|| began.saturating_sub(begin)),
        ended_ns: (ended > 0).then(|| ended.saturating_sub(begin)),
        operations: counts.filter(|&(_, count)| count > 0).collect(),
        tid,
    }
}

fn add(sum: &mut TaskResult, result: &TaskResult) {
    sum.tasks += 1;
    sum.cpu_ns += result.cpu_ns;
    sum.began_ns = sum.began_ns.min(result.began_ns);
    // One that is still alive leaves the end of all open.
    sum.ended_ns = sum.ended_ns.zip(result.ended_ns).map(|(one, other)| one.max(other));
    for (kind, count) in &result.operations {
        *sum.operations.entry(kind.clone()).or_default() += count;
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
