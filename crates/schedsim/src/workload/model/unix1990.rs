//! The built-in workload `unix1990`: Curran & Stumm's Baseline System, with our choices where their
//! text is silent.

use super::{After, Class, Distribution, Model, RunLength};
use crate::admission::Real;
use crate::machine::Sharing;
use crate::{Machine, Nanos};
use phases::Invalid;

/// The parameters of the Baseline System (Curran & Stumm 1990, §3.2).
///
/// From the paper: 4 processors, TMC 1 ms, SMC 5 %, bursts mostly of 2–4 ms and a few of 8–16 s
/// (fig. 2.1), priorities 10/20/50/20 % (§5.3), processor-intensive tasks with bursts 1,000 times
/// as long (§5.2). Our choices: the slopes of the histogram of bursts, exponential pauses of 70 ms,
/// a geometric number of bursts with mean 50, Poisson arrivals. What the paper's numbers say about
/// these choices: `tools/inference`. The quantum, 100 ms, is the policy's:
/// `take:rr?quantum=100ms`.
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
    /// The coefficient of variation of pauses: at 1 they are exponential, else log-normal.
    pub pause_variation: f64,
    /// Mean number of bursts of a task.
    pub bursts: f64,
    /// How the number of bursts of a task is drawn.
    pub counts: Counts,
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
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bursts {
    /// The histogram of fig. 2.1.
    Measured(Histogram),
    /// Exponential with this mean, for comparison with theory.
    Exponential(Nanos),
}

/// The histogram of fig. 2.1, which has no numbers on its axis: octaves, most bursts in 2–4 ms, and
/// the last at 8–16 s. The default has a mean of 4.80 ms and a squared coefficient of variation of
/// 8.8.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Histogram {
    /// Above the mode each octave has 2^−`tail` times the bursts of the one below.
    pub tail: f64,
    /// Below the mode each octave has this share of the bursts of the one above.
    pub head: f64,
    /// All lengths are multiplied by this: 0.15 if they were measured at 3 MIPS and scaled to 20.
    pub scale: f64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { tail: 1.786, head: 0.1, scale: 1.0 }
    }
}

impl Histogram {
    fn lengths(self) -> Result<Distribution, Invalid> {
        let at = |key: &'static str| move |message| Invalid { key: key.to_string(), message };
        let admit = |key, range: Real, value| {
            range.admit(value).map_err(|wrong| at(key)(wrong.to_string()))
        };
        let tail = admit("burst-tail", Real { least: 0.0, most: 10.0 }, self.tail)?;
        let head = admit("burst-head", Real { least: 0.0, most: 1.0 }, self.head)?;
        let scale = admit("burst-scale", Real::SPEED, self.scale)?;
        // Four octaves from 125 us, the mode at 2–4 ms, and twelve up to 16.4 s.
        let below = (-4..0).map(|octave| libm::pow(1.0 / head, f64::from(octave)));
        let above = (0..=12).map(|octave| libm::exp2(-tail * f64::from(octave)));
        Distribution::octaves(125e3 * scale, &below.chain(above).collect::<Vec<f64>>())
            .map_err(at("burst-scale"))
    }
}

/// How the number of bursts of a task is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counts {
    /// Geometric, from 1 on: whether a task continues does not depend on what it did.
    Geometric,
    /// The same for all tasks; the mean must be whole.
    Constant,
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
            pause_variation: 1.0,
            bursts: 50.0,
            counts: Counts::Geometric,
            burst: Bursts::Measured(Histogram::default()),
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
        let burst = self.burst_lengths()?.scaled(1.0 / self.speed).map_err(at("burst"))?;
        let baseline = Class {
            name: "unix".to_string(),
            share: 1.0,
            intensive: false,
            priorities: if self.priorities == Priorities::Four {
                FOUR.to_vec()
            } else {
                vec![(120, 1.0)]
            },
            bursts: self.burst_counts()?,
            pause: self.pauses()?,
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
        let burst = self.burst_lengths()?.mean() / self.speed;
        let migrations = (1.0 - 1.0 / f64::from(self.cpus)) * (1.0 - 1.0 / self.bursts);
        Ok(1.0 / (1.0 + self.smc + migrations * self.tmc.0 as f64 / burst))
    }

    /// The machine.
    pub fn machine(&self) -> Machine {
        let sharing = Sharing { slowdown: self.smc, ..Sharing::default() };
        Machine { migration_cost: self.tmc, sharing, ..Machine::ideal(self.cpus) }
    }

    fn burst_lengths(&self) -> Result<Distribution, Invalid> {
        match self.burst {
            Bursts::Exponential(mean) => Distribution::exponential(mean.0 as f64)
                .map_err(|message| Invalid { key: "burst".to_string(), message }),
            Bursts::Measured(histogram) => histogram.lengths(),
        }
    }

    fn burst_counts(&self) -> Result<Distribution, Invalid> {
        let bursts = match self.counts {
            Counts::Geometric => Distribution::geometric(self.bursts),
            Counts::Constant if self.bursts.fract() == 0.0 => Distribution::constant(self.bursts),
            Counts::Constant => Err(format!(
                "a constant number of bursts must be whole, not {}: bursts-law = \"geometric\" has \
                 any mean",
                self.bursts
            )),
        };
        bursts.map_err(|message| Invalid { key: "bursts".to_string(), message })
    }

    fn pauses(&self) -> Result<Distribution, Invalid> {
        let mean = self.pause.0 as f64;
        let at = |key: &'static str| move |message| Invalid { key: key.to_string(), message };
        let variation = Real { least: 0.0, most: 100.0 }
            .admit(self.pause_variation)
            .map_err(|wrong| at("pause-variation")(wrong.to_string()))?;
        if variation == 1.0 {
            Distribution::exponential(mean)
        } else {
            Distribution::log_normal(mean, variation)
        }
        .map_err(at("pause"))
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

    #[test]
    fn the_open_inputs_change_what_they_name_and_nothing_else() {
        let class = |unix: Unix1990| unix.model().map(|model| model.classes()[0].clone());
        let default = class(Unix1990::default()).unwrap();
        let histogram =
            |histogram| Unix1990 { burst: Bursts::Measured(histogram), ..Unix1990::default() };
        // Measured at 3 MIPS and scaled to 20: all bursts are shorter, and of the same shape.
        let scaled = class(histogram(Histogram { scale: 0.15, ..Histogram::default() })).unwrap();
        assert!((scaled.burst.mean() / default.burst.mean() - 0.15).abs() < 1e-12);
        assert!(
            (scaled.burst.variation_squared() / default.burst.variation_squared() - 1.0).abs()
                < 1e-9
        );
        assert_eq!((&scaled.bursts, &scaled.pause), (&default.bursts, &default.pause));
        // A tail that falls faster and a head that falls more slowly: shorter bursts.
        for shorter in [
            Histogram { tail: 2.5, ..Histogram::default() },
            Histogram { head: 0.5, ..Histogram::default() },
        ] {
            let shorter = class(histogram(shorter)).unwrap();
            assert!(shorter.burst.mean() < 0.95 * default.burst.mean(), "{shorter:?}");
        }
        let constant = class(Unix1990 { counts: Counts::Constant, ..Unix1990::default() }).unwrap();
        assert_eq!((constant.bursts.mean(), constant.bursts.variation_squared()), (50.0, 0.0));
        let pauses = class(Unix1990 { pause_variation: 3.0, ..Unix1990::default() }).unwrap().pause;
        assert!((pauses.mean() / 70e6 - 1.0).abs() < 1e-9);
        assert!((pauses.variation_squared() / 9.0 - 1.0).abs() < 1e-9);
        // Just above 1 a log-normal has the moments of the exponential.
        let near = class(Unix1990 { pause_variation: 1.0 + 1e-9, ..Unix1990::default() }).unwrap();
        assert!((near.pause.variation_squared() - default.pause.variation_squared()).abs() < 1e-6);
    }

    #[test]
    fn a_wrong_input_is_named() {
        let key = |unix: Unix1990| unix.model().unwrap_err().key;
        let histogram =
            |histogram| Unix1990 { burst: Bursts::Measured(histogram), ..Unix1990::default() };
        for wrong in [-0.1, 11.0, f64::NAN] {
            let tail = Histogram { tail: wrong, ..Histogram::default() };
            let head = Histogram { head: wrong, ..Histogram::default() };
            let scale = Histogram { scale: wrong - 1.0, ..Histogram::default() };
            assert_eq!(key(histogram(tail)), "burst-tail");
            assert_eq!(key(histogram(head)), "burst-head");
            assert!(wrong > 0.0 || key(histogram(scale)) == "burst-scale");
            let variation = if wrong > 0.0 { f64::INFINITY } else { wrong };
            assert_eq!(
                key(Unix1990 { pause_variation: variation, ..Unix1990::default() }),
                "pause-variation"
            );
        }
        let half = Unix1990 { bursts: 2.5, counts: Counts::Constant, ..Unix1990::default() };
        assert_eq!(key(half), "bursts");
    }
}
