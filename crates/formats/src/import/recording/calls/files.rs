//! Files and disks: the devices that calls on them wait for.

use super::{Calls, add};
use ::recording::{Class, storage};
use schedsim::workload::Device;
use std::collections::btree_map::Entry;

impl Calls {
    /// The device behind an object, if it is a file or a disk.
    pub(super) fn storage(&mut self, object: u64) -> Option<u32> {
        let object = self.objects.get(&object)?;
        let (number, what) = match object.class {
            Class::File => (object.peer, "file system"),
            Class::Device if object.peer & storage::DISK != 0 => (object.peer, "disk"),
            _ => return None,
        };
        self.device(number, what)
    }

    /// The device of a call on a path: the only one that was used so far, or an unknown one.
    pub(super) fn only_storage(&mut self) -> Option<u32> {
        let mut known = self.storage.iter().filter(|(number, _)| **number > 0);
        match (known.next(), known.next()) {
            (Some((_, device)), None) => Some(*device),
            _ => self.device(0, "file system"),
        }
    }

    fn device(&mut self, number: u64, what: &str) -> Option<u32> {
        match self.storage.entry(number) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(place) => {
                let device = number & !storage::DISK;
                let (major, minor) = (device >> storage::MINOR_BITS, device & storage::MINOR);
                let name = if number == 0 {
                    what.to_string() // older recorders did not say which
                } else {
                    format!("{what} {major}:{minor}")
                };
                // How many requests it serves at a time shows at the end.
                let device =
                    add(&mut self.shared.devices, Device { name, channels: 0, interrupts: None })?;
                Some(*place.insert(device))
            }
        }
    }
}
