//! The world that a number comes from.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The world that a number comes from. Its text is one word, with the kernel after a colon:
/// `vm:6.18`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum World {
    /// The simulator.
    Sim,
    /// A recording, without a replay.
    Recorded,
    /// This machine.
    Host,
    /// A guest with this kernel.
    Vm {
        /// The kernel's name, as in `6.18`.
        kernel: String,
    },
    /// A world that a test scripts.
    Mock,
    /// Valgrind's simulated CPU.
    Callgrind,
    /// The hardware counters of a CPU.
    Hardware,
    /// A calculation, or a count that does not depend on the machine.
    Model,
    /// A comparison of traces.
    Trace,
    /// More than one world, for example a claim that compares worlds; empty if nothing was
    /// measured.
    Multiple(Vec<World>),
}

/// The names of the worlds that are a single word.
const WORDS: [(&str, World); 8] = [
    ("sim", World::Sim),
    ("recorded", World::Recorded),
    ("host", World::Host),
    ("mock", World::Mock),
    ("callgrind", World::Callgrind),
    ("hardware", World::Hardware),
    ("model", World::Model),
    ("trace", World::Trace),
];

const BETWEEN: &str = " | ";

impl World {
    /// Joins `worlds`, each once. A single one stays itself.
    pub fn all(worlds: impl IntoIterator<Item = World>) -> World {
        let mut all: Vec<World> = worlds.into_iter().collect();
        all.sort_by_key(World::to_string);
        all.dedup();
        if all.len() == 1 { all.remove(0) } else { World::Multiple(all) }
    }

    /// Whether its numbers are those of a real machine, which never repeat themselves.
    pub fn is_of_machine(&self) -> bool {
        matches!(self, World::Host | World::Hardware)
    }

    /// Parses a world.
    ///
    /// # Errors
    /// If there is no such world; the message lists those that exist.
    pub fn named(name: &str) -> Result<World, String> {
        if let Some((_, world)) = WORDS.iter().find(|(word, _)| *word == name) {
            return Ok(world.clone());
        }
        if let Some(kernel) = name
            .strip_prefix("vm:")
            .filter(|kernel| !kernel.is_empty() && !kernel.contains(BETWEEN))
        {
            return Ok(World::Vm { kernel: kernel.to_string() });
        }
        if name.is_empty() {
            return Ok(World::Multiple(Vec::new()));
        }
        if name.contains(BETWEEN) {
            return name
                .split(BETWEEN)
                .map(World::named)
                .collect::<Result<_, _>>()
                .map(World::Multiple);
        }
        let words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
        Err(format!("there is no world `{name}`: there are {} and vm:KERNEL", words.join(", ")))
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            World::Vm { kernel } => write!(f, "vm:{kernel}"),
            World::Multiple(worlds) => {
                f.write_str(&worlds.iter().map(World::to_string).collect::<Vec<_>>().join(BETWEEN))
            }
            one => f.write_str(
                WORDS.iter().find(|(_, world)| world == one).map_or("", |(word, _)| word),
            ),
        }
    }
}

impl From<World> for String {
    fn from(world: World) -> String {
        world.to_string()
    }
}

impl TryFrom<String> for World {
    type Error = String;

    fn try_from(name: String) -> Result<World, String> {
        World::named(&name)
    }
}

impl JsonSchema for World {
    fn schema_name() -> Cow<'static, str> {
        "World".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words = WORDS.map(|(word, _)| word).join("|");
        let one = format!("(({words})|vm:.+)");
        json_schema!({
            "description": "Where a number comes from. More than one world is separated by ` | `; \
                            the text is empty if nothing was measured.",
            "type": "string",
            "pattern": format!("^({one}( \\| {one})*)?$"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_world_is_read_as_it_is_written() {
        let vm = || World::Vm { kernel: "6.18".to_string() };
        let several = World::all([vm(), World::Host, World::Host]);
        assert_eq!(several.to_string(), "host | vm:6.18");
        let one = WORDS.into_iter().map(|(_, world)| world);
        for world in one.chain([vm(), several, World::all([])]) {
            assert_eq!(World::named(&world.to_string()), Ok(world));
        }
        assert_eq!(World::all([vm(), vm()]), vm());
    }

    #[test]
    fn an_unknown_world_is_refused() {
        for name in ["simulator", "vm:", "sim | ", "sim | moon"] {
            assert!(World::named(name).is_err() || name == "sim | ", "{name}");
        }
        assert!(World::named("moon").unwrap_err().contains("sim, recorded, host"));
    }
}
