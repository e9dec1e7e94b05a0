//! The built-in workload `unix1990`: Curran & Stumm's Baseline System, with our choices where their
//! text is silent.

use super::{After, Class, Distribution, Model, RunLength};
use crate::machine::Sharing;
use crate::{Machine, Nanos};
use phases::Invalid;

/// The parameters of the Baseline System (Curran & Stumm 1990, §3.2).
///
/// From the paper: 4 processors, TMC 1 ms, SMC 5 %, bursts mostly of 2–4 ms and a few of 8–16 s
/// (fig. 2.1), priorities 10/20/50/20 % (§5.3), processor-intensive tasks with bursts 1,000 times
/// as long (§5.2). Our choices: the slopes of the histogram of bursts, exponential pauses of 70 ms,
/// a geometric number of bursts with mean 50, Poisson arrivals. The quantum, 100 ms, is the
/// policy's: `take:rr?quantum=100ms`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Unix1990 {
    /// Offered Load: arriving CPU time, without overhead, over available CPU time.
    pub load: f64,
    /// The number of processors.
    pub cpus: u16,
    /// Task migration cost: added to the first burst after a migration.
    pub tmc: Nanos,
    /// System migration cost: the share by which all bursts lengthen under a policy that may
    /// migrate.
    pub smc: f64,
    /// The speed of a processor; 1 is the paper's 20 MIPS. At half the speed bursts take twice as
    /// long; TMC stays, and so does the load, so that arrivals are rarer.
    pub speed: f64,
    /// Mean pause.
    pub pause: Nanos,
    /// Mean number of bursts of a task.
    pub bursts: f64,
    /// The distribution of bursts.
    pub burst: Bursts,
    /// The share of the load that comes from processor-intensive tasks.
    pub intensive: f64,
    /// Whether there are four priority levels or one.
    pub priorities: Priorities,
    /// The number of tasks, and the end of the run.
    pub length: RunLength,
}

/// The distribution of bursts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bursts {
    /// Fig. 2.1: mean 4.80 ms, squared coefficient of variation 8.8.
    Measured,
    /// Exponential with this mean, for comparison with theory.
    Exponential(Nanos),
}

/// Priorities of tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priorities {
    /// All equal.
    One,
    /// §5.3: 10 % system high, 20 % system low, 50 % user, 20 % background.
    Four,
}

/// The kernel priorities of the four levels: with `levels=4` each falls into a level of its own.
const FOUR: [(u8, f64); 4] = [(100, 0.1), (110, 0.2), (120, 0.5), (130, 0.2)];

/// Processor-intensive bursts are this much longer.
const INTENSIVE: f64 = 1000.0;

impl Default for Unix1990 {
    fn default() -> Self {
        Unix1990 {
            load: 0.7,
            cpus: 4,
            tmc: Nanos::from_millis(1),
            smc: 0.05,
            speed: 1.0,
            pause: Nanos::from_millis(70),
            bursts: 50.0,
            burst: Bursts::Measured,
            intensive: 0.0,
            priorities: Priorities::One,
            length: Unix1990::STEADY,
        }
    }
}

impl Unix1990 {
    /// Regime F: the first 1,000 tasks of an initially empty system.
    pub const FROM_EMPTY: RunLength =
        RunLength { warm_up: 0, measured: 1_000, after: After::Drain, population_limit: 20_000 };
    /// 5,000 tasks in a steady state after 1,000 warm-up tasks, which suffice up to a load of 0.7
    /// on 4 CPUs: [`Model::settling`].
    pub const STEADY: RunLength =
        RunLength { warm_up: 1_000, measured: 5_000, after: After::GoOn, population_limit: 20_000 };

    /// The workload.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub fn model(&self) -> Result<Model, Invalid> {
        let at = |key: &'static str| move |message| Invalid { key: key.to_string(), message };
        if !(self.load > 0.0 && self.load.is_finite()) {
            return Err(at("load")(format!("the load must be above zero, not {}", self.load)));
        }
        if !(0.0..1.0).contains(&self.intensive) {
            return Err(at("intensive")(format!(
                "the share of processor-intensive load must be 0 or more and below 1, not {}",
                self.intensive
            )));
        }
        if !(self.speed > 0.0 && self.speed.is_finite()) {
            return Err(at("speed")(format!("the speed must be above zero, not {}", self.speed)));
        }
        let burst = self
            .burst_lengths()
            .and_then(|burst| burst.scaled(1.0 / self.speed))
            .map_err(at("burst"))?;
        let baseline = Class {
            name: "unix".to_string(),
            share: 1.0,
            intensive: false,
            priorities: if self.priorities == Priorities::Four {
                FOUR.to_vec()
            } else {
                vec![(120, 1.0)]
            },
            bursts: Distribution::geometric(self.bursts).map_err(at("bursts"))?,
            pause: Distribution::exponential(self.pause.0 as f64).map_err(at("pause"))?,
            burst,
        };
        let mut classes = vec![baseline];
        if self.intensive > 0.0 {
            // One of these tasks brings a thousand times the load, so they are few.
            let weight = self.intensive / INTENSIVE;
            let share = weight / (weight + 1.0 - self.intensive);
            let burst = classes[0].burst.scaled(INTENSIVE).map_err(at("burst"))?;
            classes.push(Class {
                name: "intensive".to_string(),
                share,
                intensive: true,
                burst,
                ..classes[0].clone()
            });
            classes[0].share = 1.0 - share;
        }
        let work: f64 = classes.iter().map(|class| class.share * class.cpu_time()).sum();
        let gap = work / (self.load * f64::from(self.cpus));
        Model::new(
            "unix1990",
            Distribution::exponential(gap).map_err(at("cpus"))?,
            classes,
            self.length,
        )
    }

    /// The Offered Load at which Central Queue saturates, in closed form: 1 / [(1 + SMC) + (1 −
    /// 1/c)(1 − 1/K)·TMC/b]. Almost every dispatch on c CPUs migrates then, except for the first of
    /// a task's K bursts of mean b. Bursts longer than a quantum are dispatched more often, so the
    /// real limit is slightly lower.
    pub fn central_saturation_load(&self) -> Result<f64, Invalid> {
        let burst = self
            .burst_lengths()
            .map_err(|message| Invalid { key: "burst".to_string(), message })?
            .mean()
            / self.speed;
        let migrations = (1.0 - 1.0 / f64::from(self.cpus)) * (1.0 - 1.0 / self.bursts);
        Ok(1.0 / (1.0 + self.smc + migrations * self.tmc.0 as f64 / burst))
    }

    /// The machine.
    pub fn machine(&self) -> Machine {
        let sharing = Sharing { slowdown: self.smc, ..Sharing::default() };
        Machine { migration_cost: self.tmc, sharing, ..Machine::ideal(self.cpus) }
    }

    fn burst_lengths(&self) -> Result<Distribution, String> {
        match self.burst {
            Bursts::Exponential(mean) => Distribution::exponential(mean.0 as f64),
            Bursts::Measured => {
                // Four octaves from 125 us that grow tenfold, the mode at 2–4 ms, and twelve up to
                // 16.4 s that shrink by 2^-1.786.
                let below = (-4..0).map(|octave| libm::pow(10.0, f64::from(octave)));
                let above = (0..=12).map(|octave| libm::exp2(-1.786 * f64::from(octave)));
                Distribution::octaves(125e3, &below.chain(above).collect::<Vec<f64>>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_baseline_has_the_moments_that_fit_the_paper() {
        let model = Unix1990::default().model().unwrap();
        let burst = &model.classes()[0].burst;
        assert!((burst.mean() / 4.80e6 - 1.0).abs() < 0.005, "{}", burst.mean());
        assert!(
            (burst.variation_squared() / 8.8 - 1.0).abs() < 0.05,
            "{}",
            burst.variation_squared()
        );
        assert!((model.mean_task_time() / (50.0 * burst.mean() + 49.0 * 70e6) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn central_queue_saturates_where_the_closed_form_says() {
        let unix = Unix1990 {
            tmc: Nanos(2_575_316),
            burst: Bursts::Exponential(Nanos::from_millis(5)),
            ..Unix1990::default()
        };
        assert!(
            (unix.central_saturation_load().unwrap() - 0.7).abs() < 1e-6,
            "{:?}",
            unix.central_saturation_load()
        );
    }

    #[test]
    fn the_offered_load_is_as_given_with_any_mix_of_tasks() {
        for intensive in [0.0, 0.25, 0.75] {
            let unix = Unix1990 { load: 0.6, cpus: 8, intensive, ..Unix1990::default() };
            let model = unix.model().unwrap();
            assert!((model.offered_load(8) - 0.6).abs() < 1e-9);
            let part = |class: &Class| class.share * class.cpu_time() / model.mean_cpu_time();
            assert!(intensive == 0.0 || (part(&model.classes()[1]) - intensive).abs() < 1e-9);
        }
        assert_eq!(
            Unix1990 { load: f64::NAN, ..Unix1990::default() }.model().unwrap_err().key,
            "load"
        );
        assert_eq!(
            Unix1990 { intensive: 1.0, ..Unix1990::default() }.model().unwrap_err().key,
            "intensive"
        );
    }
}
