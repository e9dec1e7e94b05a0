//! The ideal: a CPU that serves all ready tasks at once, each by its weight (Stoica & Abdel-Wahab
//! 1995, section 2). Also how far from it a task may be.
//!
//! Services are integers in units of 2⁻⁴⁰ ns, so that a million roundings are less than 1 ns.

/// The unit of services: 2⁻⁴⁰ ns.
const UNIT: u32 = 40;

/// What the ideal must know of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Client {
    pub weight: u32,
    /// Its request, in ns.
    pub slice: i64,
    /// It never sleeps.
    pub is_hungry: bool,
    /// It sleeps or ends at some time.
    pub leaves: bool,
}

/// The ideal service of each task, and the real one.
pub(crate) struct Ideal {
    /// The tick's period, in ns.
    tick: i64,
    clients: Vec<Client>,
    /// By how much tasks that have left may have moved the mean, in ns of CPU time.
    most_left: i128,
    accounts: Vec<Account>,
    /// No task has left or changed its weight: all began with lag 0.
    is_clean: bool,
}

#[derive(Clone, Copy, Default)]
struct Account {
    ready: bool,
    /// In units of 2⁻⁴⁰ ns.
    ideal: i128,
    /// In ns.
    served: i64,
    /// The lag when the ready tasks or their weights last changed, if the ideal is not clean.
    from: i128,
    /// The largest bound so far on how far behind it may be, in ns, if it is hungry.
    behind: i128,
}

impl Ideal {
    pub fn new(tick: i64, clients: impl Iterator<Item = Client>) -> Ideal {
        let clients: Vec<Client> = clients.collect();
        let accounts = vec![Account::default(); clients.len()];
        let leavers = clients.iter().filter(|client| client.leaves);
        let most_left = leavers.map(|client| i128::from(client.slice) + i128::from(tick)).sum();
        Ideal { tick, clients, most_left, accounts, is_clean: true }
    }

    /// The tasks, with their present weights.
    pub fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// Real and ideal service of a task, in ns.
    pub fn served(&self, place: usize) -> (i64, i64) {
        let account = &self.accounts[place];
        (account.served, (account.ideal >> UNIT) as i64)
    }

    /// `time` ns pass while `running` runs.
    pub fn advance(&mut self, time: i64, running: Option<usize>) {
        let ready = |(account, _): &(&mut Account, &Client)| account.ready;
        let clients = self.accounts.iter_mut().zip(&self.clients);
        let weights: i128 =
            clients.filter(ready).map(|(_, client)| i128::from(client.weight)).sum();
        let clients = self.accounts.iter_mut().zip(&self.clients);
        for (account, client) in clients.filter(ready) {
            account.ideal += ((i128::from(time) * i128::from(client.weight)) << UNIT) / weights;
        }
        if let Some(place) = running {
            self.accounts[place].served += time;
        }
    }

    /// The task becomes ready.
    pub fn join(&mut self, place: usize) {
        self.accounts[place].ready = true;
        self.begin();
    }

    /// The task sleeps. From now on, lags are only compared with those at the last change.
    pub fn leave(&mut self, place: usize) {
        self.accounts[place].ready = false;
        self.is_clean = false;
        self.begin();
    }

    /// The task has another weight from now on.
    pub fn reweigh(&mut self, place: usize, weight: u32) {
        self.clients[place].weight = weight;
        self.is_clean = false;
        self.begin();
    }

    /// An interval begins in which the same tasks are ready.
    fn begin(&mut self) {
        for place in 0..self.clients.len() {
            let is_hungry = self.clients[place].is_hungry;
            let behind = if is_hungry { self.most_behind(place) } else { 0 };
            let account = &mut self.accounts[place];
            account.behind = account.behind.max(behind);
            account.from = account.ideal - (i128::from(account.served) << UNIT);
        }
    }

    /// A task joins with a lag that is not known. From now on, lags are only compared with those at
    /// the last change.
    pub fn forget_beginning(&mut self) {
        self.is_clean = false;
    }

    /// The least and the most lag of a task, in ns; of the change of its lag, if the ideal is not
    /// clean.
    pub fn bound(&self, place: usize) -> (i128, i128) {
        let behind = self.accounts[place].behind;
        let ahead = i128::from(self.clients[place].slice) + i128::from(self.tick);
        match self.is_clean {
            true => (-ahead, behind),
            false => {
                let most = ahead + behind + self.most_left;
                (-most, most)
            }
        }
    }

    /// The first task that is farther from its ideal service than its bound and `slack` ns: its
    /// place, the bound, and its lag.
    pub fn excess(&self, slack: i64) -> Option<(usize, String, String)> {
        (0..self.clients.len()).filter(|&place| self.clients[place].is_hungry).find_map(|place| {
            let Account { ideal, served, from, .. } = self.accounts[place];
            let lag = ideal - (i128::from(served) << UNIT);
            let lag = if self.is_clean { lag } else { lag - from };
            let (least, most) = self.bound(place);
            let (least, most) = (least - i128::from(slack), most + i128::from(slack));
            let (least_unit, most_unit) = ((least - 1) << UNIT, (most + 1) << UNIT);
            (lag < least_unit || lag > most_unit).then(|| {
                let since = if self.is_clean { "" } else { " since the ready tasks changed" };
                let lag = lag >> UNIT;
                (place, format!("a lag of {least} to {most} ns{since}"), format!("{lag} ns"))
            })
        })
    }

    /// How far behind its ideal service a task may fall, in ns, if all began with lag 0.
    ///
    /// Let `k` have weight `w`, request `r`, virtual deadline `d = v + r/w`, and let `T` be the
    /// tick, `W` the weights of all. Go back to when `k` was last not behind. Since then it is
    /// eligible, so who runs instead has a deadline not after `d`, and ends at most `T` of CPU time
    /// after its deadline: at a virtual run time of at most `d + T/w'`. It began, by then, not
    /// behind V ≥ v, or was ahead by its request and a tick already. So each other was served at
    /// most the larger of its request and `r w'/w`, and `T`, more than what `k` got by its weight;
    /// and `k` is behind by `w/W` of the sum.
    fn most_behind(&self, place: usize) -> i128 {
        let Client { weight, slice, .. } = self.clients[place];
        let (own, tick) = (i128::from(weight), i128::from(self.tick));
        let (mut sum, mut weights) = (0, own);
        for (other, client) in self.clients.iter().enumerate() {
            // A sleeper may still be in the mean.
            if other != place && (self.accounts[other].ready || !self.is_clean) {
                let held = (i128::from(slice) * i128::from(client.weight) + own - 1) / own;
                sum += tick + held.max(i128::from(client.slice));
                weights += i128::from(client.weight);
            }
        }
        (sum * own + weights - 1) / weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_is_by_weight_and_the_bounds_are_those_of_the_proof() {
        let client = |weight, slice| Client { weight, slice, is_hungry: true, leaves: false };
        let mut ideal = Ideal::new(4, [client(1, 3), client(2, 3)].into_iter());
        ideal.join(0);
        ideal.join(1);
        // Of 7 ns, one third and two thirds. Bounds: 0 is ahead by at most 3 + 4; behind by
        // (4 + max(3, 3 × 2/1)) × 1/3 = 4 (rounded up). 1: behind by (4 + 3) × 2/3 = 5 (up).
        ideal.advance(7, Some(0));
        assert_eq!([ideal.served(0), ideal.served(1)], [(7, 2), (0, 4)]);
        assert_eq!([ideal.most_behind(0), ideal.most_behind(1)], [4, 5]);
        assert_eq!(ideal.excess(0), None);
        // After 11 ns: 11 − 11/3 = 7.33 ahead, too much but for the 1 ns of rounding; 7.33 behind.
        ideal.advance(4, Some(0));
        let (place, bound, got) = ideal.excess(0).unwrap();
        assert_eq!((place, bound.as_str(), got.as_str()), (1, "a lag of -7 to 5 ns", "7 ns"));
        // A sleeper of the past makes the bound wider, and counts from now.
        ideal.leave(0);
        assert_eq!(ideal.excess(0), None);
    }
}
