//! `cargo qemu`: builds, boots, tests and measures the Paceline guest.
#![forbid(unsafe_code)]

fn main() {}
