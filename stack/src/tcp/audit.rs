//! What must hold of every connection after every step, for the simulator to check.

use super::{
    Tcp,
    connection::{Connection, State},
};
use crate::device::{Owner, Page};
use alloc::{format, string::String};

impl<P: Page> Tcp<P> {
    /// Checks all connections; `held` tells how many payload bytes of an owner the device has.
    pub fn audit(&self, held: impl Fn(Owner) -> u64) -> Result<(), String> {
        for connection in self.table.iter() {
            if let Err(fault) = connection.audit(&held) {
                let tuple = connection.tuple;
                return Err(format!(
                    "{fault}\n{tuple:?}: {:#?}",
                    connection.info(self.now)
                ));
            }
            if let Some(at) = connection.timers.earliest()
                && !connection.queued
                && self.timers.next().is_none_or(|next| next > at)
            {
                let next = self.timers.next();
                return Err(format!("a timer at {at} is not queued: next is {next:?}"));
            }
        }
        Ok(())
    }
}

impl<P: Page> Connection<P> {
    fn audit(&self, held: impl Fn(Owner) -> u64) -> Result<(), String> {
        if !self.retransmits.is_consistent() {
            return Err(format!(
                "bytes in flight are not the sum of what is neither reported nor lost: {:?}",
                self.retransmits
            ));
        }
        let in_device = u64::from(self.device.in_device_bytes());
        let held = held(self.id.owner());
        if in_device != held {
            return Err(format!(
                "{in_device} bytes are accounted as in the device, which holds {held}"
            ));
        }
        if self.state == State::Closed {
            // It is only kept until the application has heard of its end.
            return Ok(());
        }
        let outstanding = self.snd.nxt.bytes_since(self.snd.una) > 0;
        let waits = outstanding || (self.notsent_bytes() > 0 && self.state.is_synchronized());
        let timers = &self.timers;
        let timed =
            timers.retransmit.is_some() || timers.persist.is_some() || timers.pace.is_some();
        if waits && !timed && !self.queued && in_device == 0 {
            return Err(String::from(
                "data waits, and no timer, device or turn to send",
            ));
        }
        Ok(())
    }
}
