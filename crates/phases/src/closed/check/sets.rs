//! Checks sources of sets, and phases that change whether they are watched.

use super::{Verdict, expect, invalid};
use crate::closed::{Closed, EpollObject, EpollSource, Trigger, WatchPhase};

impl Closed {
    pub(super) fn check_watch(&self, watch: &WatchPhase, key: &str) -> Verdict {
        let Some(set) = self.epolls.get(&watch.epoll) else {
            return invalid(key, format!("there is no table [epoll.{}]", watch.epoll));
        };
        let source = set.sources.iter().find(|source| source.object == watch.source);
        let Some(source) = source else {
            return invalid(key, format!("the set {} does not have this source", watch.epoll));
        };
        expect(!source.exclusive, key, || {
            "the kernel changes no source that is exclusive; leave `exclusive` out".into()
        })
    }

    /// What the kernel refuses, and what is not simulated.
    pub(super) fn check_source(&self, source: &EpollSource, key: &str) -> Verdict {
        let EpollSource { object, trigger, exclusive, off } = source;
        if !exclusive {
            return Ok(());
        }
        let fits = matches!(trigger, Trigger::Level | Trigger::Edge) && !off;
        expect(fits, key, || {
            "a source that is exclusive is level- or edge-triggered, and watched from the beginning"
                .into()
        })?;
        let is_pipe = matches!(object, EpollObject::Pipe(_) | EpollObject::PipeRoom(_));
        expect(!is_pipe, key, || {
            "exclusive sources are sockets and event counters; of pipes they are not simulated"
                .into()
        })
    }
}
