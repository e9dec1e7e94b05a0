//! How an image is started that is no Linux of ours: nothing is added to it.

use super::{FEATURES, Limits, MODEL, Qemu, confine, option};
use std::path::Path;
use std::process::{Command, Stdio};

/// What one start of an image needs.
#[derive(Clone, Copy, Debug)]
pub struct Bare<'a> {
    /// The image: what QEMU's `-kernel` loads.
    pub image: &'a Path,
    /// Our plugin.
    pub library: &'a Path,
    /// Where it writes the marks.
    pub marks: &'a Path,
    /// Memory in MiB.
    pub memory: u32,
}

impl Qemu {
    /// The command that starts an image on one CPU, an instruction a nanosecond. What it writes to
    /// the debug console is on standard output.
    pub fn bare(&self, bare: &Bare<'_>) -> Command {
        let mut command = self.program.command();
        command.args(["-accel", "tcg", "-icount", "shift=0,sleep=off", "-seed", "1"]);
        command.args(["-rtc", "base=2026-01-01T00:00:00,clock=vm"]);
        command.arg("-cpu").arg(MODEL.to_string() + FEATURES);
        command.args(["-smp", "1", "-m", &format!("{}M", bare.memory)]);
        command.args(["-nodefaults", "-no-user-config", "-no-reboot"]);
        command.args(["-vga", "none", "-net", "none", "-display", "none", "-debugcon", "stdio"]);
        command.arg("-kernel").arg(bare.image);
        let marks = option(",marks=", bare.marks);
        command.arg("-plugin").arg(option("file=", bare.library) + &marks);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        confine(&mut command, Limits::of(bare.memory));
        command
    }
}
