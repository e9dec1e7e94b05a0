//! Sets of objects that tasks wait for together.

use super::defaults::is_default;
use crate::admission::{Channels, admitted};
use serde::{Deserialize, Serialize};

/// A set of objects that tasks wait for together (`epoll`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EpollOptions {
    /// The objects, in the order in which they are added to the set.
    pub sources: Vec<EpollSource>,
    /// The largest number of objects that one wait returns; 64 by default.
    #[serde(
        default = "most_events",
        deserialize_with = "admitted::<_, Channels, _>",
        skip_serializing_if = "is_most_events"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Channels"))]
    pub events: u16,
}

/// An object in a set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "SourceKeys", into = "SourceKeys")]
#[cfg_attr(feature = "schema", schemars(with = "SourceKeys"))]
pub struct EpollSource {
    /// What the task waits for.
    pub object: EpollObject,
    /// When a wait returns it.
    pub trigger: Trigger,
    /// Whether news of it wake one of the sets that have it so, not all (`EPOLLEXCLUSIVE`).
    pub exclusive: bool,
    /// Whether it is watched only after a [`WatchPhase`].
    pub off: bool,
}

impl From<EpollObject> for EpollSource {
    /// Level-triggered, and watched from the beginning.
    fn from(object: EpollObject) -> EpollSource {
        EpollSource { object, trigger: Trigger::Level, exclusive: false, off: false }
    }
}

/// What a task may wait for at an object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EpollObject {
    /// Data in a pipe.
    Pipe(String),
    /// What is sent at a pair of sockets.
    Socket(String),
    /// What is replied at a pair of sockets.
    Reply(String),
    /// An event of a counter.
    Eventfd(String),
    /// Room to write to a pipe: a free page.
    PipeRoom(String),
    /// Room to send at a pair of sockets: at most a quarter of the buffer is in use.
    SendRoom(String),
    /// Room to reply at a pair of sockets.
    ReplyRoom(String),
}

/// When a wait for a set returns an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// As long as it is ready.
    #[default]
    Level,
    /// Once for all news since the last time (`EPOLLET`).
    Edge,
    /// As `edge`, by a task that takes all that there is: what it leaves counts as news when it
    /// waits for the set again.
    Drained,
    /// Once; then it is not watched any more, until a [`WatchPhase`] (`EPOLLONESHOT`).
    Once,
}

/// A source as it is written: its object and its options stand in one table.
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
struct SourceKeys {
    /// Data in this pipe.
    #[serde(skip_serializing_if = "is_default")]
    pipe: Option<String>,
    /// What is sent at this pair of sockets.
    #[serde(skip_serializing_if = "is_default")]
    socket: Option<String>,
    /// What is replied at this pair of sockets.
    #[serde(skip_serializing_if = "is_default")]
    reply: Option<String>,
    /// An event of this counter.
    #[serde(skip_serializing_if = "is_default")]
    eventfd: Option<String>,
    /// Room to write to this pipe.
    #[serde(skip_serializing_if = "is_default")]
    pipe_room: Option<String>,
    /// Room to send at this pair of sockets.
    #[serde(skip_serializing_if = "is_default")]
    send_room: Option<String>,
    /// Room to reply at this pair of sockets.
    #[serde(skip_serializing_if = "is_default")]
    reply_room: Option<String>,
    /// When a wait returns it.
    #[serde(skip_serializing_if = "is_default")]
    trigger: Trigger,
    /// Whether news of it wake one of the sets that have it so, not all (`EPOLLEXCLUSIVE`).
    #[serde(skip_serializing_if = "is_default")]
    exclusive: bool,
    /// Whether it is watched only after a `watch`.
    #[serde(skip_serializing_if = "is_default")]
    off: bool,
}

impl TryFrom<SourceKeys> for EpollSource {
    type Error = String;

    fn try_from(keys: SourceKeys) -> Result<EpollSource, String> {
        let objects = [
            keys.pipe.map(EpollObject::Pipe),
            keys.socket.map(EpollObject::Socket),
            keys.reply.map(EpollObject::Reply),
            keys.eventfd.map(EpollObject::Eventfd),
            keys.pipe_room.map(EpollObject::PipeRoom),
            keys.send_room.map(EpollObject::SendRoom),
            keys.reply_room.map(EpollObject::ReplyRoom),
        ];
        let mut objects = objects.into_iter().flatten();
        let (Some(object), None) = (objects.next(), objects.next()) else {
            return Err("a source names one object: `pipe`, `socket`, `reply`, `eventfd`, \
                        `pipe_room`, `send_room` or `reply_room`"
                .to_string());
        };
        let (trigger, exclusive, off) = (keys.trigger, keys.exclusive, keys.off);
        Ok(EpollSource { object, trigger, exclusive, off })
    }
}

impl From<EpollSource> for SourceKeys {
    fn from(source: EpollSource) -> SourceKeys {
        let EpollSource { object, trigger, exclusive, off } = source;
        let mut keys = SourceKeys { trigger, exclusive, off, ..SourceKeys::default() };
        let (place, name) = match object {
            EpollObject::Pipe(name) => (&mut keys.pipe, name),
            EpollObject::Socket(name) => (&mut keys.socket, name),
            EpollObject::Reply(name) => (&mut keys.reply, name),
            EpollObject::Eventfd(name) => (&mut keys.eventfd, name),
            EpollObject::PipeRoom(name) => (&mut keys.pipe_room, name),
            EpollObject::SendRoom(name) => (&mut keys.send_room, name),
            EpollObject::ReplyRoom(name) => (&mut keys.reply_room, name),
        };
        *place = Some(name);
        keys
    }
}

fn most_events() -> u16 {
    64
}

fn is_most_events(events: &u16) -> bool {
    *events == 64
}

/// One `epoll_ctl(2)`: from now on a source of a set is watched, or is not. One that is ready then
/// is news. After this a source that is watched `once` is returned once more.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WatchPhase {
    /// The set, which has a table.
    pub epoll: String,
    /// One of its sources.
    pub source: EpollObject,
    /// Whether it is watched no more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub off: bool,
}
