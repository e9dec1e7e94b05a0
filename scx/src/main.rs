//! The program for the policies of `schedsim`.

fn main() -> std::process::ExitCode {
    schedlab_scx::main(&[])
}
