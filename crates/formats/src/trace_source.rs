//! A trace on disk, schedlab's own or a recording, that can be replayed to observers repeatedly.

use crate::import;
use crate::import::Options;
use crate::selection::{Selected, Selection};
use crate::trace_file::{Header, Reader, Task};
use program::Error;
use schedsim::trace::{CHUNK, Event, Observer};
use schedsim::{TaskId, Time};
use std::path::{Path, PathBuf};

/// A trace: its description and the place of its events.
pub struct TraceSource {
    /// The workload, the candidate (`recorded` for a recording), the CPUs and the tasks.
    pub header: Header,
    /// How many events were lost while it was recorded.
    pub lost: u64,
    /// It does not say priorities nor why tasks stopped: they are inferred.
    pub is_inferred: bool,
    /// By task: its priority changed while it was recorded; the header has the last one.
    reprioritised: Vec<bool>,
    path: PathBuf,
    is_recording: bool,
    selection: Selection,
    /// The tasks that are selected; `None` for all.
    selected: Option<Vec<bool>>,
}

impl TraceSource {
    /// Opens the trace at `path`. A recording is read once to find its tasks.
    ///
    /// # Errors
    /// If it is neither a trace of schedlab nor a recording that can be imported.
    pub fn open(path: &Path) -> Result<TraceSource, Error> {
        if Reader::recognises(path) {
            return Ok(TraceSource {
                header: Reader::open(path)?.header().clone(),
                lost: 0,
                is_inferred: false,
                reprioritised: Vec::new(),
                path: path.to_path_buf(),
                is_recording: false,
                selection: Selection::default(),
                selected: None,
            });
        }
        let recording = import::read(path, &Options::default(), vec![])?;
        Ok(TraceSource::of_recording(path, &recording))
    }

    /// The recording at `path`, which has been read already.
    pub fn of_recording(path: &Path, recording: &import::Recording) -> TraceSource {
        let header = Header {
            workload: path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            candidate: "recorded".to_string(),
            cpus: recording.cpus,
            seed: 0,
            version: env!("CARGO_PKG_VERSION").to_string(),
            tasks: recording.tasks.iter().map(Task::from).collect(),
        };
        TraceSource {
            header,
            lost: recording.report.lost,
            is_inferred: recording.report.is_inferred,
            reprioritised: recording.reprioritised.clone(),
            path: path.to_path_buf(),
            is_recording: true,
            selection: Selection::default(),
            selected: None,
        }
    }

    /// This part of the trace. The trace is read once to find the tasks that are left.
    ///
    /// # Errors
    /// If it cannot be read completely, or nothing is left.
    pub fn select(mut self, selection: Selection) -> Result<TraceSource, Error> {
        if selection.is_all() {
            return Ok(self);
        }
        let tasks = &self.header.tasks;
        if tasks.is_empty() && selection.names_tasks() {
            let reason =
                "the tasks of this trace have no names: they were drawn while it was simulated";
            return Err(Error::Usage(reason.to_string()));
        }
        self.selected = selection.tasks(tasks.iter().map(|task| task.name.as_str()))?;
        let mut selected = Selected::new(&selection, self.selected.clone(), vec![]);
        let end = self.all(vec![&mut selected])?;
        let part = selected.finish(end)?;
        let left = part.tasks.iter().filter_map(|task| tasks.get(task.index()).cloned());
        let reprioritised = part.tasks.iter().map(|task| self.is_reprioritised(*task)).collect();
        self.header.tasks = left.collect();
        self.reprioritised = reprioritised;
        self.selection = selection;
        Ok(self)
    }

    /// Whether the priority of `task` changed while it was recorded.
    pub fn is_reprioritised(&self, task: TaskId) -> bool {
        self.reprioritised.get(task.index()).copied().unwrap_or(false)
    }

    /// Passes all events to `observers` and returns the time of the last.
    ///
    /// # Errors
    /// If the file cannot be read completely; then discard the results of the observers.
    pub fn feed(&self, observers: Vec<&mut dyn Observer>) -> Result<Time, Error> {
        if self.selection.is_all() {
            return self.all(observers);
        }
        let mut selected = Selected::new(&self.selection, self.selected.clone(), observers);
        let end = self.all(vec![&mut selected])?;
        Ok(selected.finish(end)?.end)
    }

    fn all(&self, mut observers: Vec<&mut dyn Observer>) -> Result<Time, Error> {
        if self.is_recording {
            // Lost events were refused or accepted when the tasks were read.
            let options = Options { allow_lost: true, ..Options::default() };
            return Ok(Time(import::read(&self.path, &options, observers)?.duration.0));
        }
        let mut reader = Reader::open(&self.path)?;
        let mut chunk: Vec<Event> = Vec::with_capacity(CHUNK);
        let mut end = Time::ZERO;
        loop {
            chunk.clear();
            while chunk.len() < CHUNK
                && let Some(event) = reader.next_event()?
            {
                end = event.time;
                chunk.push(event);
            }
            if chunk.is_empty() {
                return Ok(end);
            }
            observers.iter_mut().for_each(|observer| observer.events(&chunk));
        }
    }
}
