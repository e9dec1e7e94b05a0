//! The reference as a process: three lines make a `Subject` one.

fn main() -> std::io::Result<()> {
    let mut subject = vectors::Reference::default();
    vectors::serve(&mut subject, std::io::stdin().lock(), std::io::stdout().lock())
}
