//! Where QEMU puts the CPUs of a machine: its sockets are alike, and so are their dies, cores and
//! threads. A machine whose clusters or nodes differ in size has some of these places only.

use schedsim::Place;

/// The model of QEMU's CPUs.
pub const MODEL: &str = "qemu64";

/// The places of QEMU's machine, and which of them have a CPU.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Grid {
    sockets: u16,
    /// Of each socket.
    dies: u16,
    /// Of each die.
    cores: u16,
    /// Of each core.
    threads: u16,
    /// Of each CPU: its socket, die, core and thread.
    cpus: Vec<[u16; 4]>,
}

/// A CPU's number for interrupts has 8 bits, and the last is for all CPUs.
const MOST_NUMBERS: u32 = 255;

impl Grid {
    /// The smallest that has `places`.
    ///
    /// # Errors
    /// What about them QEMU cannot have.
    pub fn of(places: &[Place]) -> Result<Grid, &'static str> {
        let mut cpus: Vec<[u16; 4]> = Vec::with_capacity(places.len());
        let (mut clusters, mut cores) = (0, 0);
        for (index, place) in places.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| (places[before], cpus[before]));
            let at = match before {
                None => [0; 4],
                Some((last, [socket, die, core, thread])) if place.core == last.core => {
                    [socket, die, core, thread + 1]
                }
                Some((last, [socket, die, core, _])) if place.cluster == last.cluster => {
                    cores += 1;
                    [socket, die, core + 1, 0]
                }
                Some((last, [socket, die, ..])) => {
                    (clusters, cores) = (clusters + 1, cores + 1);
                    if place.node == last.node {
                        [socket, die + 1, 0, 0]
                    } else {
                        [socket + 1, 0, 0, 0]
                    }
                }
            };
            if [place.node, place.cluster, place.core] != [at[0], clusters, cores] {
                return Err(
                    "its CPUs are not numbered node by node, cluster by cluster, core by core",
                );
            }
            cpus.push(at);
        }
        let most = |level: usize| cpus.iter().map(|at| at[level] + 1).max().unwrap_or(1);
        let [sockets, dies, cores, threads] = [0, 1, 2, 3].map(most);
        let grid = Grid { sockets, dies, cores, threads, cpus };
        let largest = grid.cpus.iter().map(|&at| grid.number(at)).max();
        if largest >= Some(MOST_NUMBERS) {
            return Err("its clusters or nodes differ so much in size that the numbers of QEMU's \
                        CPUs do not suffice");
        }
        Ok(grid)
    }

    /// The number of a place for interrupts: each level has bits of its own.
    fn number(&self, at: [u16; 4]) -> u32 {
        let levels = [1, self.dies, self.cores, self.threads].map(u32::from);
        at.iter().zip(levels).fold(0, |number, (&at, level)| {
            (number << level.next_power_of_two().ilog2()) + u32::from(at)
        })
    }

    /// QEMU's `-smp`: all CPUs, or the first alone where some places have none.
    pub fn smp(&self) -> String {
        let Grid { sockets, dies, cores, threads, .. } = self;
        let first = if self.is_full() {
            self.cpus.len().to_string()
        } else {
            format!("1,maxcpus={}", self.places())
        };
        format!("{first},sockets={sockets},dies={dies},cores={cores},threads={threads}")
    }

    /// The other CPUs where some places have none, each a device of QEMU's.
    pub fn devices(&self) -> Vec<String> {
        let device = |[socket, die, core, thread]: &[u16; 4]| {
            format!(
                "{MODEL}-x86_64-cpu,socket-id={socket},die-id={die},core-id={core},\
                 thread-id={thread}"
            )
        };
        self.cpus.iter().skip(1).filter(|_| !self.is_full()).map(device).collect()
    }

    /// How many places there are.
    pub fn places(&self) -> u16 {
        self.sockets * self.of_socket()
    }

    /// How many places a socket has.
    pub fn of_socket(&self) -> u16 {
        self.dies * self.cores * self.threads
    }

    fn is_full(&self) -> bool {
        usize::from(self.places()) == self.cpus.len()
    }
}
