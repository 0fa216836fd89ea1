//! A deterministic network in virtual time, for tests and experiments: NICs with programmable
//! rings and offloads, links with rate, delay and loss, stacks and tasks on them.
//!
//! ```
//! use paceline_stack::{sim::{Link, Network, NicConfig}, stack::Config, time::Duration};
//!
//! let mut network = Network::new();
//! let config = |host: u8| Config {
//!     address: [192, 0, 2, host].into(),
//!     prefix: 24,
//!     gateway: None,
//!     secret: [host; 16],
//! };
//! let a = network.add(NicConfig::default(), &config(1), Link::default());
//! let b = network.add(NicConfig::default(), &config(2), Link::default());
//! network.run_for(Duration::from_millis(1));
//! assert!(a.net.with(|stack| stack.counters().arp_in_pkts) > 0);
//! # let _ = b;
//! ```

pub mod apps;
pub mod barrage;
mod codel;
mod completion;
pub mod figures;
mod frame;
pub mod gauntlet;
mod link;
mod network;
mod nic;
mod one_way;
mod packet;
mod page;
mod random;
mod source;
pub mod svg;
mod tasks;
mod trace;

pub use codel::CoDelConfig;
pub use completion::{CompletionTime, Cost};
pub use frame::{Frame, pcap};
pub use link::{Link, LinkCounters, Loss, Reorder};
pub use network::{Fate, Host, Network, Record, Side};
pub use nic::{NicConfig, NicCounters, Sent, SimDevice, SimNic};
pub use one_way::OneWay;
pub use page::{PAGE_BYTES, Pool, SimPage};
pub use random::Random;
pub use tasks::{Clock, Sleep, Spawner};
pub use trace::{Sample, Trace};
