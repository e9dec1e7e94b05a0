//! The kernels that the repository describes.

/// Their names, and their files for `--kernel-source` (`source_package.rs`).
pub const DESCRIBED: [(&str, &str); 4] = [
    ("pslist-6.1", "kernel/pslist/kernel.toml"),
    ("cfs-6.1", "kernel/pslist/control.toml"),
    ("pslist-debug-6.1", "kernel/pslist/debug.toml"),
    ("slice-7.3", "kernel/slice-extension/kernel.toml"),
];

/// What builds the kernel `name`, if it is one of them.
pub fn build_command(name: &str) -> Option<String> {
    let (_, file) = DESCRIBED.iter().find(|(described, _)| *described == name)?;
    Some(format!("schedlab compare yield:2 --on vm --kernel-source {file}"))
}
