//! Paceline's stack as a process of Linux, for tests and measurements without a hypervisor: a NIC
//! on a TAP interface or a socket, the guest's loop, network namespaces with Linux's own TCP in
//! them, and an emulator of the path between two hosts.
#![forbid(unsafe_code)]

mod emulator;
mod namespace;
mod nic;
pub mod priority;
mod run;

pub use emulator::{Emulator, Lateness, Report, socket_pair};
pub use namespace::{Namespace, Output, READY};
pub use nic::{Mode, Nic, tap};
pub use run::run;

use std::path::Path;

/// Programs that are always needed.
const PROGRAMS: [&str; 4] = ["ip", "iperf3", "nsenter", "unshare"];

/// Why namespaces with interfaces cannot be had here, or one of `programs` or iperf3 not be run.
pub fn missing(programs: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".into());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("needs /dev/net/tun".into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    PROGRAMS
        .iter()
        .chain(programs)
        .find(|program| !std::env::split_paths(&path).any(|folder| folder.join(program).exists()))
        .map(|program| format!("needs {program}"))
}
