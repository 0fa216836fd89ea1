//! Tasks in virtual time.

use crate::time::{Duration, Instant};
use alloc::{boxed::Box, rc::Rc, sync::Arc, task::Wake, vec::Vec};
use core::{
    cell::{Cell, RefCell},
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Waker},
};

/// The virtual clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    now: Rc<Cell<Instant>>,
    sleepers: Rc<RefCell<Vec<(Instant, Waker)>>>,
}

impl Clock {
    /// The time.
    pub fn now(&self) -> Instant {
        self.now.get()
    }

    /// Lets time pass in a task.
    pub fn sleep(&self, span: Duration) -> Sleep {
        Sleep {
            clock: self.clone(),
            until: self.now() + span,
        }
    }

    pub(super) fn set(&self, now: Instant) {
        self.now.set(now);
        self.sleepers.borrow_mut().retain(|(until, waker)| {
            if *until <= now {
                waker.wake_by_ref();
            }
            *until > now
        });
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.sleepers.borrow().iter().map(|(until, _)| *until).min()
    }
}

/// Future of [`Clock::sleep`].
#[derive(Debug)]
pub struct Sleep {
    clock: Clock,
    until: Instant,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.until {
            return Poll::Ready(());
        }
        let mut sleepers = self.clock.sleepers.borrow_mut();
        // A task that waits for other things, too, asks again and again.
        let known = |(until, waker): &(Instant, Waker)| {
            *until == self.until && waker.will_wake(context.waker())
        };
        if !sleepers.iter().any(known) {
            sleepers.push((self.until, context.waker().clone()));
        }
        Poll::Pending
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Flag>,
}

impl Task {
    fn new(future: impl Future<Output = ()> + 'static) -> Self {
        Self {
            future: Box::pin(future),
            woken: Arc::new(Flag(AtomicBool::new(true))),
        }
    }
}

/// Starts tasks, from within tasks too.
#[derive(Clone, Default)]
pub struct Spawner(Rc<RefCell<Vec<Task>>>);

impl Spawner {
    /// Runs `future` as a task whenever it is woken.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.0.borrow_mut().push(Task::new(future));
    }
}

/// Tasks that run when they are woken.
#[derive(Default)]
pub(super) struct Tasks {
    tasks: Vec<Task>,
    spawner: Spawner,
}

impl Tasks {
    pub(super) fn spawner(&self) -> Spawner {
        self.spawner.clone()
    }

    /// Runs each task that was woken, once; whether there were any.
    pub(super) fn run(&mut self) -> bool {
        self.tasks.append(&mut self.spawner.0.borrow_mut());
        let mut ran = false;
        self.tasks.retain_mut(|Task { future, woken }| {
            if !woken.0.swap(false, Ordering::Relaxed) {
                return true;
            }
            ran = true;
            let waker = Waker::from(Arc::clone(woken));
            let mut context = Context::from_waker(&waker);
            future.as_mut().poll(&mut context).is_pending()
        });
        ran
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len() + self.spawner.0.borrow().len()
    }
}
