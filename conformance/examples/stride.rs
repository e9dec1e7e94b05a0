//! Stride scheduling as a process: who has the least pass runs until the next tick (Waldspurger &
//! Weihl 1995). It states nothing, so only its decisions are tested:
//!
//! ```sh
//! cargo run --example stride  # or: schedlab-vectors --subject process:target/debug/examples/stride
//! ```

use std::collections::BTreeMap;
use vectors::{Answer, Broken, Event, Op, Subject};

#[derive(Default)]
struct Stride {
    /// Weight, pass, and whether it is ready, by number.
    tasks: BTreeMap<u32, (u32, u128, bool)>,
    running: u32,
    charged: i64,
}

impl Stride {
    fn least(&self) -> (u32, u128) {
        let ready = self.tasks.iter().filter(|(_, (_, _, ready))| *ready);
        let passes = ready.map(|(&task, &(_, pass, _))| (task, pass));
        passes.min_by_key(|&(_, pass)| pass).unwrap_or((0, 0))
    }

    fn leave(&mut self) {
        if let Some((_, _, ready)) = self.tasks.get_mut(&self.running) {
            *ready = false;
        }
        self.running = 0;
    }
}

impl Subject for Stride {
    fn event(&mut self, event: &Event) -> Result<Answer, Broken> {
        if let Some((weight, pass, _)) = self.tasks.get_mut(&self.running) {
            *pass += ((event.at - self.charged) as u128) * (1 << 30) / u128::from(*weight);
        }
        self.charged = event.at;
        let mut answer = Answer::default();
        match event.op {
            Op::Reset { .. } => *self = Stride::default(),
            Op::Task { task, weight, .. } => {
                self.tasks.insert(task, (weight, 0, false));
            }
            Op::Wake { task } | Op::New { task } => {
                let (_, least) = self.least();
                if let Some((_, pass, ready)) = self.tasks.get_mut(&task) {
                    (*pass, *ready) = (least.max(*pass), true);
                }
            }
            Op::Tick => answer.resched = Some(self.least().0 != self.running),
            Op::Block | Op::Exit => self.leave(),
            Op::Yield => {}
            Op::Weight { task, weight: new } => {
                if let Some((weight, _, _)) = self.tasks.get_mut(&task) {
                    *weight = new;
                }
            }
            Op::Slice { .. } => answer.error = Some("stride has no requests".into()),
            Op::Pick => {
                self.running = self.least().0;
                answer.runs = Some(self.running);
            }
        }
        Ok(answer)
    }
}

fn main() -> std::io::Result<()> {
    vectors::serve(&mut Stride::default(), std::io::stdin().lock(), std::io::stdout().lock())
}
