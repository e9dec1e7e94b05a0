//! Figures of a paper that show the workload itself or a mechanism, drawn from a model and not from
//! measurements.

use super::fault::{Fault, none_of};
use super::flow_chart::flow_chart;
use super::folder::Folder;
use formats::workload::{ClosedWorkload, Parameters, Stochastic, Workload};
use program::{Error, no_such};
use results::counted;
use results::figure::{Axis, Curve, Figure, Point};
use schedsim::workload::{Stream, Tasks};
use serde::Deserialize;
use std::fmt::Write;

/// The subject of a diagram.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "shows", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Diagram {
    /// The lengths of CPU bursts: their distribution over octaves.
    Bursts {
        /// A stochastic workload.
        workload: String,
    },
    /// The queueing network: where tasks wait, run and pause.
    Network {
        /// A stochastic workload.
        workload: String,
    },
    /// The phases of a task.
    Program {
        /// A closed workload.
        workload: String,
        /// The name of one of its `[[task]]`s.
        task: String,
    },
    /// Pictures drawn by the project's simulations, one below the other.
    Pictures {
        /// SVG files beside the paper's other files.
        files: Vec<String>,
    },
}

/// The number of bursts drawn.
const SAMPLE: u32 = 1_000_000;

impl Diagram {
    /// The error if it names something that does not exist or has nothing to show: a key, and a
    /// message.
    pub fn fault(&self, folder: &Folder) -> Option<Fault> {
        let workload = |why: Error| ("workload".to_string(), why.to_string());
        match self {
            Diagram::Bursts { workload: name } | Diagram::Network { workload: name } => {
                stochastic(name, folder).err().map(workload)
            }
            Diagram::Program { workload: name, task } => match closed(name, folder) {
                Err(why) => Some(workload(why)),
                Ok(closed) => tasks(&closed, task).err().map(|why| ("task".to_string(), why)),
            },
            Diagram::Pictures { files } => {
                files.iter().enumerate().find(|(_, file)| folder.text(file).is_none()).map(
                    |(place, file)| {
                        let names: Vec<String> = folder
                            .names()
                            .filter(|name| name.ends_with(".svg"))
                            .map(str::to_string)
                            .collect();
                        (
                            format!("files[{place}]"),
                            no_such(
                                "picture",
                                file,
                                &names,
                                &format!("It must lie beside {}.", folder.path("experiments.toml")),
                            ),
                        )
                    },
                )
            }
        }
    }

    /// Draws the figure; `empty` has everything except the content.
    ///
    /// # Errors
    /// If the workload, the task or a file does not exist, or has nothing to show.
    pub fn draw(&self, empty: Figure, folder: &Folder) -> Result<Figure, Error> {
        let picture = |svg: String| Figure { diagram: Some(svg), ..empty.clone() };
        let of_figure = |error: Error| Error::Input(format!("{}: {error}", empty.id));
        Ok(match self {
            Diagram::Bursts { workload } => {
                bursts(&stochastic(workload, folder).map_err(of_figure)?, empty.clone())
            }
            Diagram::Network { workload } => {
                picture(network(&stochastic(workload, folder).map_err(of_figure)?))
            }
            Diagram::Program { workload, task } => {
                let workload = closed(workload, folder).map_err(of_figure)?;
                picture(flow_chart(
                    tasks(&workload, task).map_err(|why| of_figure(Error::Input(why)))?,
                ))
            }
            Diagram::Pictures { files } => {
                picture(files.iter().filter_map(|file| folder.text(file)).collect())
            }
        })
    }
}

fn stochastic(name: &str, folder: &Folder) -> Result<Stochastic, Error> {
    match folder.workload(name)? {
        Workload::Stochastic(template) => template.with(&Parameters::default()),
        _ => Err(Error::Input(format!(
            "the workload {name} is not drawn at random and has no distributions"
        ))),
    }
}

fn closed(name: &str, folder: &Folder) -> Result<ClosedWorkload, Error> {
    match folder.workload(name)? {
        Workload::Closed(workload) => Ok(*workload),
        _ => Err(Error::Input(format!("the workload {name} has no tasks that go through phases"))),
    }
}

/// The tasks with this name.
fn tasks<'w>(workload: &'w ClosedWorkload, name: &str) -> Result<&'w Tasks, String> {
    let all = &workload.description().tasks;
    let names: Vec<String> = all.iter().map(|tasks| tasks.name.clone()).collect();
    all.iter()
        .find(|tasks| tasks.name == name)
        .ok_or_else(|| none_of("task", name, &names, workload.name()))
}

/// The share of bursts in each octave of milliseconds, from a sample with a fixed seed.
fn bursts(workload: &Stochastic, figure: Figure) -> Figure {
    let axis = |label: &str| Axis { label: label.to_string(), log: true, ..Axis::default() };
    let curve = |class: &schedsim::workload::Class| {
        let mut stream = Stream::new(1, 0);
        let mut octaves = std::collections::BTreeMap::<i32, u32>::new();
        (0..SAMPLE).for_each(|_| {
            *octaves
                .entry((class.burst.draw(&mut stream) / 1e6).log2().floor() as i32)
                .or_default() += 1
        });
        // On a log axis, a point is at the middle of its octave.
        let point = |(octave, count): (i32, u32)| {
            let (share, all) = (f64::from(count) / f64::from(SAMPLE), f64::from(SAMPLE));
            // Of a share of draws; 1.96 standard errors are 95 %.
            let half_width = 1.96 * (share * (1.0 - share) / all).sqrt();
            Point {
                x: f64::from(octave).exp2() * std::f64::consts::SQRT_2,
                value: Some(share),
                low: Some((share - half_width).max(0.0)),
                high: Some(share + half_width),
                printed: None,
            }
        };
        Curve {
            name: class.name.clone(),
            points: octaves.into_iter().map(point).collect(),
            dashed: false,
        }
    };
    let curves = workload.model.classes().iter().map(curve).collect();
    Figure {
        x: axis("length of a CPU burst, ms (by octave)"),
        y: axis("share of all bursts"),
        curves,
        ..figure
    }
}

/// Tasks arrive, wait for a CPU, run, pause and return, or exit; with the workload's numbers.
fn network(workload: &Stochastic) -> String {
    let (model, machine) = (&workload.model, &workload.machine);
    let class = &model.classes()[0];
    let ms = |ns: f64| format!("{:.3} ms", ns / 1e6).replace(".000 ms", " ms");
    let mut svg =
        "<svg viewBox=\"0 0 760 330\" role=img xmlns=\"http://www.w3.org/2000/svg\"><defs><marker \
         id=tip viewBox=\"0 0 8 8\" refX=7 refY=4 markerWidth=7 markerHeight=7 orient=auto><path \
         d=\"M0 0L8 4L0 8z\" fill=currentColor /></marker></defs>"
            .to_string();
    let mut text = |x: u32, y: u32, text: &str| {
        let _ = write!(svg, "<text x={x} y={y} font-size=13 fill=currentColor>{text}</text>");
    };
    text(8, 90, "arrivals");
    text(8, 107, &format!("every {}", ms(model.gap())));
    text(8, 124, &format!("load {:.2}", model.offered_load(machine.cpus)));
    text(190, 60, "ready queue(s)");
    text(190, 77, "CQ one · IP, TK one per CPU");
    text(420, 30, &counted(machine.cpus.into(), "CPU"));
    text(
        420,
        222,
        &format!(
            "quantum {}",
            workload.quantum.map_or("endless".to_string(), |quantum| quantum.to_string())
        ),
    );
    text(
        420,
        239,
        &format!("burst {} (CV² {:.1})", ms(class.burst.mean()), class.burst.variation_squared()),
    );
    text(560, 60, &format!("migration: TMC {}", machine.migration_cost));
    text(560, 77, &format!("SMC {} % on every burst", 100.0 * machine.sharing.slowdown));
    text(655, 118, "leave after");
    text(655, 135, &format!("{:.0} bursts", class.bursts.mean()));
    text(300, 300, &format!("I/O: a delay of {}, no queueing", ms(class.pause.mean())));
    let mut line = |points: &str| {
        let _ = write!(
            svg,
            "<path d=\"{points}\" fill=none stroke=currentColor stroke-width=1.5 \
             marker-end=\"url(#tip)\" />"
        );
    };
    line("M90 120H190");
    line("M350 120H415");
    line("M500 120H645");
    // At the end of a burst: pause, then back to the queue. At the end of a quantum: back at once.
    line("M580 120V280H520");
    line("M280 280H150V128H190");
    line("M540 120V180H230V145");
    for place in 0..8 {
        let _ = write!(
            svg,
            "<rect x={} y=100 width=20 height=40 fill=none stroke=currentColor />",
            190 + 20 * place
        );
    }
    let cpus = machine.cpus.min(4);
    for cpu in 0..cpus {
        let y = 120 + 40 * u32::from(cpu) - 20 * u32::from(cpus - 1);
        let _ = write!(svg, "<circle cx=458 cy={y} r=17 fill=none stroke=currentColor />");
    }
    let _ = write!(
        svg,
        "<rect x=280 y=262 width=240 height=22 rx=11 fill=none stroke=currentColor \
         stroke-dasharray=\"5 3\" /></svg>"
    );
    svg
}
