//! The portable parts of the Paceline guest: servers, clients, shell and command line. They run
//! on the host as well, where their tests do.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cmdline;
pub mod executor;
pub mod iperf3;
pub mod memory;
pub mod shell;
