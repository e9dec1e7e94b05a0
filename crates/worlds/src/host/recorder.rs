//! Records what a scheduler does and why tasks wait, with the program `schedlab-recorder`.
//!
//! It is a program of its own (`recorder/`, under the GPL), as its half in the kernel must be.

use super::record::{find_command, supervise};
use crate::experiment::KnownCosts;
use formats::import;
use program::{Error, Scratch};
use recording::{Calibration, Outcome, Reader};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The program's name.
const PROGRAM: &str = "schedlab-recorder";

/// What [`Error::Missing`] has as its exit code, here and there.
const MISSING: i32 = 77;

/// The recorder, on a machine that can have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorder {
    program: PathBuf,
}

/// Whose calls are recorded. The scheduling events of all tasks always are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Scope {
    /// The command's tasks.
    #[default]
    Command,
    /// This process as well, and all that it starts.
    Process(u32),
    /// The tasks of this control group and below as well.
    Cgroup(PathBuf),
    /// All tasks.
    All,
}

/// What is recorded, and how much of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Request {
    /// Whose calls.
    pub scope: Scope,
    /// The share of the CPU time below which the recorder is to stay, such as `3%`.
    pub budget: Option<String>,
    /// The last while that is kept, such as `10s`.
    pub snapshot: Option<String>,
    /// The signal or command of the shell for which a snapshot is written.
    pub when: Option<String>,
    /// `program-N` stands for the names of tasks.
    pub hide_names: bool,
    /// The paths of open files are written.
    pub paths: bool,
    /// The calls of the C library's locks are recorded.
    pub uprobes: bool,
    /// The costs of scheduling that were measured first are written beside the recording.
    pub calibrations: Vec<Calibration>,
    /// How often the command runs first, without the recorder and with it.
    pub light_run: Option<u32>,
}

impl Request {
    /// As options of the program.
    fn options(&self) -> Vec<OsString> {
        let mut options = Vec::new();
        let mut add = |name: &str, value: &OsStr| {
            let mut option = OsString::from(format!("--{name}="));
            option.push(value);
            options.push(option);
        };
        match &self.scope {
            Scope::Command => {}
            Scope::Process(pid) => add("pid", pid.to_string().as_ref()),
            Scope::Cgroup(group) => add("cgroup", group.as_ref()),
            Scope::All => options.push("--all".into()),
        }
        let mut add = |name: &str, value: &Option<String>| {
            options.extend(value.iter().map(|value| format!("--{name}={value}").into()));
        };
        add("budget", &self.budget);
        add("snapshot", &self.snapshot);
        add("when", &self.when);
        options.extend(self.hide_names.then(|| "--hide-names".into()));
        options.extend(self.paths.then(|| "--paths".into()));
        options.extend(self.uprobes.then(|| "--uprobes".into()));
        options.extend(self.light_run.map(|count| format!("--light-run={count}").into()));
        options
    }
}

impl Recorder {
    /// The recorder. It is searched for at `SCHEDLAB_RECORDER`, beside this program, in
    /// `target/release`, and in `PATH`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none, or if this machine or user cannot run it.
    pub fn find() -> Result<Recorder, Error> {
        let program = locate().ok_or_else(|| {
            Error::Missing(format!(
                "recording causes needs the program {PROGRAM}; build it with: cargo build \
                 --release -p {PROGRAM} (which needs: apt-get install clang-19 libelf-dev \
                 zlib1g-dev pkg-config), or say where it is in SCHEDLAB_RECORDER"
            ))
        })?;
        let name = program.display();
        let checked = Command::new(&program).arg("--check").stdin(Stdio::null()).output();
        let checked = checked
            .map_err(|error| Error::Missing(format!("{name} cannot be started: {error}")))?;
        if checked.status.success() {
            return Ok(Recorder { program });
        }
        let said = String::from_utf8_lossy(&checked.stderr);
        let said = said.trim().trim_start_matches("schedlab-recorder: ");
        Err(match checked.status.code() {
            Some(MISSING) => Error::Missing(said.to_string()),
            _ => Error::Missing(format!("{name} --check ended with {}: {said}", checked.status)),
        })
    }

    /// What scheduling costs on this machine: a program of known operations is recorded. It takes a
    /// fifth of a second of a machine that is idle otherwise.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn calibrate(&self) -> Result<Vec<Calibration>, Error> {
        let folder = Scratch::new()?;
        let file = folder.path().join("exercise.rec");
        let command = [self.program.clone().into(), "--exercise".into()];
        let status = self.record(&command, &file, &Request::default())?;
        if !status.is_some_and(|status| status.success()) {
            return Err(Error::Internal("the exercise of --calibrate failed".to_string()));
        }
        let known = KnownCosts::load(&file, |file, options, observers| {
            Ok(import::read(file, &options, observers)?)
        })?;
        Ok(known.calibrations())
    }

    /// Runs `command` and records into `file` until it ends, or until an interrupt. The file is
    /// readable at any time. Returns the command's exit status, if it ended.
    ///
    /// # Errors
    /// [`Error::Usage`] if the command cannot be started or the file not be written,
    /// [`Error::Missing`] if a privilege is missing, [`Error::Input`] if the recorder was killed.
    pub fn record(
        &self,
        command: &[OsString],
        file: &Path,
        request: &Request,
    ) -> Result<Option<ExitStatus>, Error> {
        if let Some(program) = command.first() {
            find_command(program, "record")?;
        }
        let mut recorder = Command::new(&self.program);
        recorder.arg("-o").arg(file).args(request.options());
        // It is there until the recorder has ended.
        let folder = (!request.calibrations.is_empty()).then(Scratch::new).transpose()?;
        if let Some(folder) = &folder {
            let costs = folder.path().join("costs.json");
            fs::write(&costs, Calibration::to_json(&request.calibrations))
                .map_err(|error| Error::Internal(format!("{}: {error}", costs.display())))?;
            recorder.arg("--costs").arg(costs);
        }
        recorder.arg("--").args(command);
        let status = supervise(&mut recorder, PROGRAM)?.status;
        // It has already said why.
        let failed = |what| format!("{PROGRAM} {what}; its message is above");
        match status.code() {
            Some(0) => Ok(status_of_command(file)),
            Some(2) => Err(Error::Usage(failed("cannot record this"))),
            Some(MISSING) => Err(Error::Missing(failed("misses something"))),
            None => Err(Error::Input(format!(
                "{PROGRAM} ended with {status}; what it wrote until then is in {}",
                file.display()
            ))),
            _ => Err(Error::Internal(failed(&format!("ended with {status}")))),
        }
    }
}

/// The exit status of the command, from the last chunk of the recording.
fn status_of_command(file: &Path) -> Option<ExitStatus> {
    let file = std::io::BufReader::new(std::fs::File::open(file).ok()?);
    match Reader::new(file).ok()?.read(|_, _| {}).ok()? {
        Outcome::Complete(end) => end.status.map(ExitStatus::from_raw),
        Outcome::Cut { .. } => None,
    }
}

fn locate() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("SCHEDLAB_RECORDER") {
        return Some(PathBuf::from(named)).filter(|program| program.is_file());
    }
    let beside = std::env::current_exe().ok().map(|path| path.with_file_name(PROGRAM));
    let built = Path::new("target/release").join(PROGRAM);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join(PROGRAM));
    beside.into_iter().chain([built]).chain(on_path).find(|program| program.is_file())
}

/// Whether a recording of this name is one with causes.
pub fn has_causes(file: &Path) -> bool {
    file.extension() == Some(OsStr::new("rec"))
}
