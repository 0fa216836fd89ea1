//! As much of an executor as a test needs.

use super::FakeStore;
use crate::xen::xenstore::Xenstore;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};

/// Rounds without a result after which a future counts as stuck.
const MAX_ROUNDS: usize = 10_000;

/// Remembers that the future was woken.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs a future with xenstored and the client's loop beside it, and with `step`, which plays
/// whatever else there is: a backend, say.
///
/// The future is polled only when it was woken. `None` when it is stuck.
pub fn block_on<T>(
    store: &FakeStore,
    client: &Xenstore,
    mut step: impl FnMut(),
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = pin!(future);
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(woken.clone());
    let mut cx = Context::from_waker(&waker);
    for _ in 0..MAX_ROUNDS {
        if woken.0.swap(false, Ordering::SeqCst)
            && let Poll::Ready(value) = future.as_mut().poll(&mut cx)
        {
            return Some(value);
        }
        store.run();
        step();
        client.poll();
    }
    None
}
