//! How far long work has come, on standard error, and only where a person looks at it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// A bar for `total` steps of `what`; hidden unless standard error is a terminal.
pub fn bar(what: &str, total: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(total), target).with_prefix(what.to_string());
    let style =
        ProgressStyle::with_template("{prefix} [{bar:30}] {percent}% {msg} (ETA {eta})").unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
