//! `schedlab tour`: a first session, on data that the program has within it.

use clap::Args;
use program::terminal::wrapped;
use program::{Error, name, print};
use std::fs;
use std::io::{BufRead, IsTerminal, stdin};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a tour needs, by name.
const FILES: [(&str, &[u8]); 2] = [
    ("groff.rec.zst", include_bytes!("../data/groff.rec.zst")),
    ("mixed.toml", include_bytes!("../data/mixed.toml")),
];

/// A part of the tour: what it is about, a command, and what to look at in its output.
struct Stop {
    about: &'static str,
    words: &'static [&'static str],
    look: &'static str,
}

const STOPS: [Stop; 5] = [
    Stop {
        about: "A recording has what a program and the kernel did: who ran, who waited, and who woke \
                whom. This one is of groff, which formats manuals, on two CPUs.",
        words: &["inspect", "groff.rec.zst"],
        look: "The table has the tasks by CPU time. A task's run delay is the time for which it was \
               ready and had no CPU.",
    },
    Stop {
        about: "Would another scheduler or setting help this program? schedlab replays the program \
                under each of them, sixteen times.",
        words: &["compare", "groff.rec.zst", "-o", "answer"],
        look: "The first line is the answer. Under `Fidelity` the replay under the recorded scheduler \
               is held against the recording: its error decides what a difference is worth. A `~` \
               stands for a difference that is not decided, a `=` for none. answer/report.html has \
               the same as a page, with timelines.",
    },
    Stop {
        about: "A workload can also be written: tasks with phases, in TOML. mixed.toml has three \
                that only compute, of different nice values, and five that sleep often.",
        words: &["compare", "mixed.toml", "--policy", "eevdf,rr,o1"],
        look: "Nothing is replayed here, so there is no fidelity: the policies are compared as they \
               are, on an ideal machine.",
    },
    Stop {
        about: "A scheduler's ready queue has a cost of its own. This counts what the structures \
                examine as the number of waiting tasks grows.",
        words: &["queue", "--tasks", "10,100", "--count", "steps"],
        look: "Steps are list elements, table entries or tree levels. Without `--count steps` it \
               counts instructions, with valgrind.",
    },
    Stop {
        about: "What more can be had on this machine?",
        words: &["doctor"],
        look: "A `!` marks what limits measurements here, with the command that changes it.",
    },
];

/// Walk through a first session: five commands on bundled data, in a minute or two
///
/// Each command is shown and explained before it runs. On a terminal the tour waits for Enter
/// between them; q ends it. It needs no rights and no network, and writes into one folder.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  schedlab tour\n  schedlab tour -o /tmp/first")]
pub struct Tour {
    /// The folder for the data and the results
    #[arg(short, long, value_name = "DIR", default_value = "schedlab-tour")]
    output: PathBuf,
}

impl Tour {
    /// Walks through all stops, until the user ends it.
    pub fn run(self) -> Result<(), Error> {
        let folder = &self.output;
        fill(folder)?;
        print(&format!(
            "A first session in {} commands. The data is in {}; each command runs there.\n",
            STOPS.len(),
            folder.display()
        ))?;
        let program = std::env::current_exe()
            .map_err(|error| Error::Internal(format!("the program has no path: {error}")))?;
        for (number, stop) in (1..).zip(&STOPS) {
            let command = format!("{} {}", name(), stop.words.join(" "));
            print(&format!(
                "\n{number} of {}. {}\n\n$ {command}\n\n",
                STOPS.len(),
                filled(stop.about)
            ))?;
            if !goes_on()? {
                return Ok(());
            }
            let done = Command::new(&program)
                .args(stop.words)
                .current_dir(folder)
                .stdin(Stdio::null())
                .status()
                .map_err(|error| Error::Internal(format!("{command} does not start: {error}")))?;
            if !done.success() {
                return Err(Error::Check(format!(
                    "{command} failed ({done}) in {}: run it there by itself",
                    folder.display()
                )));
            }
            print(&format!("\n{}\n", filled(stop.look)))?;
        }
        print(&farewell(folder))
    }
}

/// Writes the data into `folder`. What is there already must be the same.
fn fill(folder: &Path) -> Result<(), Error> {
    let failed = |path: &Path, error: &std::io::Error| {
        Error::Input(format!("{}: {error}: give another folder with -o DIR", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for (file, bytes) in FILES {
        let path = folder.join(file);
        match fs::read(&path) {
            Ok(there) if there == bytes => {}
            Ok(_) => {
                return Err(Error::Input(format!(
                    "{}: it is not the tour's file: give another folder with -o DIR",
                    path.display()
                )));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                fs::write(&path, bytes).map_err(|error| failed(&path, &error))?;
            }
            Err(error) => return Err(failed(&path, &error)),
        }
    }
    Ok(())
}

/// Waits for Enter if a user is there; false if that user ends the tour.
fn goes_on() -> Result<bool, Error> {
    if !stdin().is_terminal() {
        return Ok(true);
    }
    print("Enter runs it, q ends the tour: ")?;
    let mut line = String::new();
    let read = stdin().lock().read_line(&mut line);
    let read = read.map_err(|error| Error::Internal(format!("the terminal: {error}")))?;
    print("\n")?;
    Ok(read > 0 && !line.trim().eq_ignore_ascii_case("q"))
}

fn filled(text: &str) -> String {
    const WIDTH: usize = 80;
    wrapped(text, WIDTH).join("\n")
}

fn farewell(folder: &Path) -> String {
    let (name, folder) = (name(), folder.display());
    format!(
        "\nThat was the tour. Its page: {folder}/answer/report.html\n\n\
         With a program of your own:  sudo {name} record -o my.rec -- COMMAND\n                             \
         {name} compare my.rec\n\
         In a real Linux kernel:      {name} compare yield:8 --on vm --policy kernel:other,bpf:rr\n\
         A policy of your own:        {name} new policy mine\n\
         All commands:                {name} --help\n"
    )
}
