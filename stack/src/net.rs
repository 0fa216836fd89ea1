//! A stack shared by the sockets on it and the loop that runs it.

use crate::{
    device::Device,
    stack::{Polled, Stack},
    time::Instant,
};
use alloc::rc::Rc;
use core::cell::RefCell;

/// A handle to a [`Stack`]. Clones share it.
///
/// One loop polls it; sockets call into it between polls. Nothing may call back into the handle
/// from within [`Net::with`].
pub struct Net<D: Device>(Rc<RefCell<Stack<D>>>);

impl<D: Device> Clone for Net<D> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<D: Device> Net<D> {
    /// Shares a stack.
    pub fn new(stack: Stack<D>) -> Self {
        Self(Rc::new(RefCell::new(stack)))
    }

    /// Calls into the stack.
    pub fn with<R>(&self, f: impl FnOnce(&mut Stack<D>) -> R) -> R {
        f(&mut self.0.borrow_mut())
    }

    /// One step of the loop: [`Stack::poll`].
    pub fn poll(&self, now: Instant) -> Polled {
        self.with(|stack| stack.poll(now))
    }

    /// Whether a socket has asked for [`Net::poll`] since it was last called. The loop looks here
    /// after it has run the tasks, and before it goes idle.
    pub fn poll_wanted(&self) -> bool {
        self.0.borrow().poll_wanted()
    }
}
