//! The description of the run in a trace file.

use schedsim::admission::{Cpus, Pid, Priority, admitted};
use schedsim::trace::TaskInfo;
use serde::{Deserialize, Serialize};

/// The next step for a damaged file.
pub(super) const ADVICE: &str =
    "write it again with `schedlab run WORKLOAD --policy P --trace FILE`";

/// The description of the run in a trace file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The workload's name.
    pub workload: String,
    /// The candidate's name.
    pub candidate: String,
    /// The number of CPUs.
    #[serde(deserialize_with = "admitted::<_, Cpus, _>")]
    pub cpus: u16,
    /// The seed.
    pub seed: u64,
    /// The version of schedlab.
    pub version: String,
    /// The tasks, by id.
    pub tasks: Vec<Task>,
}

/// The field that identifies a header of an older version.
#[derive(Deserialize)]
struct OldHeader {
    #[serde(rename = "policy")]
    _policy: String,
}

/// A task of a trace file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// The recorded thread id.
    #[serde(deserialize_with = "admitted::<_, Pid, _>")]
    pub pid: u32,
    /// The recorded process id.
    #[serde(deserialize_with = "admitted::<_, Pid, _>")]
    pub tgid: u32,
    /// Linux's kernel priority.
    #[serde(deserialize_with = "admitted::<_, Priority, _>")]
    pub prio: u8,
}

impl From<&TaskInfo> for Task {
    fn from(info: &TaskInfo) -> Task {
        Task { name: info.name.clone(), pid: info.pid, tgid: info.tgid, prio: info.prio }
    }
}

impl Header {
    /// Reads the JSON of a header.
    ///
    /// # Errors
    /// With what is wrong and the next step.
    pub(super) fn read(json: &[u8]) -> Result<Header, String> {
        serde_json::from_slice(json).map_err(|error| {
            let renamed = match serde_json::from_slice::<OldHeader>(json) {
                Ok(_) => " (an older version wrote it: `policy` is `candidate` now)",
                Err(_) => "",
            };
            format!("its header cannot be read: {error}{renamed}; {ADVICE}")
        })
    }
}
