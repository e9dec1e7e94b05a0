//! What the tasks of a running job share: its program, memory, pipes and files, and how it ends.

use crate::device_file::DeviceFile;
use crate::epoll::Watched;
use crate::failure::Failure;
use crate::program::{Epoll, Object, Program, Source, Template};
use crate::shared::{self, Instance, Places, Shared};
use crate::{clock, epoll, pipe, sync};
use schedlab_runner::nudge::Nudge;
use schedlab_runner::session::{Host, Job, Windows};
use std::io;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// A job while it runs.
pub struct Stage {
    /// The job's number.
    pub number: usize,
    /// What its tasks do.
    pub program: Program,
    /// What they share.
    pub shared: Shared,
    /// The samples to take.
    pub windows: Option<Windows>,
    /// The ends of each pipe: to read, to write.
    pub pipes: Vec<(i32, i32)>,
    /// The ends of each pair of sockets.
    pub sockets: Vec<[i32; 2]>,
    /// The event counters.
    pub eventfds: Vec<i32>,
    /// The sets of objects.
    pub epolls: Vec<i32>,
    /// The objects of each set.
    pub watched: Vec<Vec<Watched>>,
    /// The files that stand for devices.
    pub files: Vec<DeviceFile>,
    /// Whether tasks add up what they used; not in a guest.
    pub reports_usage: bool,
    /// Whether each task also reports its run delay, which takes microseconds: only with few
    /// tasks.
    pub is_detailed: bool,
    /// Whether forked tasks keep their results apart.
    pub places: Places,
    /// What this run differs by.
    pub nudge: Nudge,
}

/// With more tasks than this, only the sum of each kind of task is reported.
const FEW: usize = 4096;

impl Stage {
    /// Opens the pipes and files of `job`.
    pub fn new(number: usize, job: &Job, host: Option<&Host>) -> Result<Stage, String> {
        let program = Program::new(&job.workload, job.class, host.map_or(0, |host| host.nice))?;
        let nudge = job.nudge;
        shared::reserve(nudge.heap);
        let reports_usage = host.is_some();
        let places =
            if reports_usage && program.instances > FEW { Places::GivenBack } else { Places::Kept };
        let shared = Shared::new(
            &program,
            job.windows.map_or(0, |windows| windows.count as usize + 1),
            places,
            nudge.data,
        );
        let pipes: Vec<(i32, i32)> =
            program.pipes.iter().map(|&capacity| pipe::open(capacity)).collect::<Result<_, _>>()?;
        let sockets: Vec<[i32; 2]> =
            program.sockets.iter().map(|&kind| pipe::pair(kind)).collect::<Result<_, _>>()?;
        for (semaphore, options) in shared.semaphores.iter().zip(&program.eventfds) {
            semaphore.post(options.count.into());
        }
        let eventfds: Vec<i32> = program
            .eventfds
            .iter()
            .map(|&options| pipe::counter(options))
            .collect::<Result<_, _>>()?;
        let source = |source: &Source| {
            let descriptor = match source.object {
                Object::Pipe(pipe) => pipes[pipe].0,
                Object::PipeRoom(pipe) => pipes[pipe].1,
                Object::Socket(end) => sockets[end.pair][end.side],
                // A set has a descriptor once, and this end may be in it for its messages.
                Object::Room(end) => pipe::duplicate(sockets[end.pair][end.side])?,
                Object::Eventfd(eventfd) => eventfds[eventfd],
            };
            Ok::<_, String>(Watched { descriptor, of: *source })
        };
        let set = |epoll: &Epoll| epoll.sources.iter().map(source).collect::<Result<_, _>>();
        let watched: Vec<Vec<Watched>> =
            program.epolls.iter().map(set).collect::<Result<_, _>>()?;
        let epolls = watched.iter().map(|set| epoll::open(set)).collect::<Result<_, _>>()?;
        let files =
            program.files.iter().map(|name| DeviceFile::create(name)).collect::<Result<_, _>>()?;
        let is_detailed = host.is_some_and(|host| !host.bare) && program.instances <= FEW;
        Ok(Stage {
            number,
            program,
            shared,
            windows: job.windows,
            pipes,
            sockets,
            eventfds,
            epolls,
            watched,
            files,
            reports_usage,
            is_detailed,
            places,
            nudge,
        })
    }

    /// The results of the instances of a template.
    pub fn places_of(&self, template: &Template) -> &'static [Instance] {
        &self.shared.instances[template.first..template.first + template.count]
    }

    /// Gives back the place of instance `number`, which has ended.
    pub fn leave_place(&self, number: usize, template: &Template) {
        if self.places == Places::GivenBack && template.forked {
            self.shared.families[self.program.index_of(number)]
                .give_back(number - template.first, self.places_of(template));
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

    /// When the gate was opened, on `CLOCK_MONOTONIC`.
    pub fn monotonic_begin(&self) -> u64 {
        self.shared.board.begin_monotonic.load(Relaxed)
    }

    /// Ends the job.
    pub fn finish(&self) {
        let board = self.shared.board;
        board.end_ns.store(clock::now(), SeqCst);
        board.done.store(1, SeqCst);
        sync::wake(&board.done, sync::ALL);
    }

    /// Fails the job unless `can` holds.
    pub fn expect(&self, can: bool, or: Failure) {
        if !can {
            self.fail(or);
        }
    }

    /// Ends the job with a failure of the calling task.
    pub fn fail(&self, failure: Failure) {
        let board = self.shared.board;
        board
            .error
            .store(io::Error::last_os_error().raw_os_error().unwrap_or(0).cast_unsigned(), SeqCst);
        board.failure.store(failure as u32, SeqCst);
        sync::wake(&board.ready, sync::ALL);
        self.finish();
        loop {
            // SAFETY: it has no arguments. The job's process ends soon, and this task with it.
            unsafe { libc::pause() };
        }
    }

    /// The failure of a task as a message.
    pub fn failure(&self) -> Result<(), String> {
        let board = self.shared.board;
        let Some(what) = Failure::message(board.failure.load(SeqCst)) else { return Ok(()) };
        let error = io::Error::from_raw_os_error(board.error.load(SeqCst).cast_signed());
        Err(format!("{what}: {error}"))
    }
}
