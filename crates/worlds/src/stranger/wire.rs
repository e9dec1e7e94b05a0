//! The channel to an untrusted policy's process. No read waits on it longer than the limits allow.

use crate::failure::Limits;
use schedsim::policy::remote::{Link, receive, send};
use std::cell::Cell;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Why a channel broke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// The time was over.
    Late,
    /// There were more calls than this.
    Often(u64),
    /// What came is no message.
    Form,
    /// The other end closed it.
    Closed,
}

/// A channel to an untrusted policy.
#[derive(Debug)]
pub struct Wire {
    from: BufReader<Patient>,
    to: Patient,
    calls: u64,
    most_calls: u64,
    broken: Rc<Cell<Option<Broken>>>,
}

/// A stream on which each wait ends with the deadline.
#[derive(Debug)]
struct Patient {
    stream: UnixStream,
    deadline: Instant,
}

/// How often a wait looks at the clock.
const LOOK: Duration = Duration::from_millis(100);
/// How often a policy may be called for each event.
const CALLS_PER_EVENT: u64 = 8;

impl Wire {
    /// The channel `stream`, and where it says why it broke.
    ///
    /// # Errors
    /// As the system.
    pub fn new(stream: UnixStream, limits: Limits) -> io::Result<(Wire, Rc<Cell<Option<Broken>>>)> {
        stream.set_read_timeout(Some(LOOK))?;
        stream.set_write_timeout(Some(LOOK))?;
        let deadline = limits.deadline;
        let from = BufReader::new(Patient { stream: stream.try_clone()?, deadline });
        let broken = Rc::new(Cell::new(None));
        let most_calls = limits.events.saturating_mul(CALLS_PER_EVENT).saturating_add(1000);
        let to = Patient { stream, deadline };
        Ok((Wire { from, to, calls: 0, most_calls, broken: broken.clone() }, broken))
    }

    fn break_by(&self, error: &io::Error) -> String {
        let why = match error.kind() {
            ErrorKind::TimedOut => Broken::Late,
            ErrorKind::InvalidData => Broken::Form,
            _ => Broken::Closed,
        };
        self.broken.set(Some(why));
        format!("its channel broke: {error}")
    }
}

impl Link for Wire {
    fn exchange(&mut self, message: &[u64]) -> Result<Vec<u64>, String> {
        self.tell(message)?;
        receive(&mut self.from).map_err(|error| self.break_by(&error))
    }

    fn tell(&mut self, message: &[u64]) -> Result<(), String> {
        self.calls += 1;
        if self.calls > self.most_calls {
            self.broken.set(Some(Broken::Often(self.most_calls)));
            return Err("it is called too often".to_string());
        }
        // One that answers just before each look would never be late.
        if Instant::now() > self.to.deadline {
            self.broken.set(Some(Broken::Late));
            return Err("the time is over".to_string());
        }
        send(&mut self.to, message).map_err(|error| self.break_by(&error))
    }
}

impl Patient {
    fn wait<T>(&mut self, mut step: impl FnMut(&UnixStream) -> io::Result<T>) -> io::Result<T> {
        loop {
            match step(&self.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() > self.deadline {
                        return Err(io::Error::new(ErrorKind::TimedOut, "the time is over"));
                    }
                }
                done => return done,
            }
        }
    }
}

impl Read for Patient {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.wait(|mut stream| stream.read(bytes))
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(|mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
