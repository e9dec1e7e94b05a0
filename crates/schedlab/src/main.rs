//! The command line.

fn main() -> std::process::ExitCode {
    schedlab::main(&[])
}
