//! A single-threaded executor and its timers.
//!
//! Tasks run inside the main loop: [`Executor::run`] polls those that were woken, [`Timers`] wakes
//! those whose time has come. Nothing here waits; the main loop does, when no task is ready.

use alloc::{boxed::Box, collections::BTreeMap, rc::Rc, sync::Arc, task::Wake, vec::Vec};
use core::{
    cell::{Cell, RefCell},
    fmt,
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Waker},
};
use paceline_stack::time::{Duration, Instant};

/// How often [`Executor::run`] goes round all tasks before the main loop has its turn again.
const ROUNDS: usize = 8;

type Pinned = Pin<Box<dyn Future<Output = ()>>>;

/// A task's wake-up: its own flag, and the executor's.
struct Wakeup {
    ready: AtomicBool,
    any_ready: Arc<AtomicBool>,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.store(true, Ordering::Relaxed);
        self.any_ready.store(true, Ordering::Relaxed);
    }
}

struct Task {
    future: Pinned,
    wakeup: Arc<Wakeup>,
    waker: Waker,
}

/// What the executor and its spawners share.
#[derive(Default)]
struct Shared {
    spawned: RefCell<Vec<Pinned>>,
    any_ready: Arc<AtomicBool>,
}

/// Runs tasks.
#[derive(Default)]
pub struct Executor {
    tasks: Vec<Task>,
    shared: Rc<Shared>,
}

impl Executor {
    /// An executor without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle to start tasks with, from inside tasks too.
    pub fn spawner(&self) -> Spawner {
        Spawner(Rc::clone(&self.shared))
    }

    /// Polls the tasks that were woken, and those they wake, for a bounded number of rounds. True
    /// when tasks are ready still.
    pub fn run(&mut self) -> bool {
        for _ in 0..ROUNDS {
            self.adopt();
            if !self.shared.any_ready.swap(false, Ordering::Relaxed) {
                return false;
            }
            self.tasks.retain_mut(|task| {
                if !task.wakeup.ready.swap(false, Ordering::Relaxed) {
                    return true;
                }
                let mut context = Context::from_waker(&task.waker);
                task.future.as_mut().poll(&mut context).is_pending()
            });
        }
        self.adopt();
        self.shared.any_ready.load(Ordering::Relaxed)
    }

    /// Number of tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.tasks.len() + self.shared.spawned.borrow().len()
    }

    fn adopt(&mut self) {
        let Self { tasks, shared } = self;
        for future in shared.spawned.borrow_mut().drain(..) {
            let wakeup = Arc::new(Wakeup {
                ready: AtomicBool::new(true),
                any_ready: Arc::clone(&shared.any_ready),
            });
            shared.any_ready.store(true, Ordering::Relaxed);
            tasks.push(Task {
                future,
                waker: Waker::from(Arc::clone(&wakeup)),
                wakeup,
            });
        }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("tasks", &self.tasks())
            .finish_non_exhaustive()
    }
}

/// Starts tasks on an [`Executor`].
#[derive(Clone)]
pub struct Spawner(Rc<Shared>);

impl Spawner {
    /// Starts a task. It is polled for the first time in the next round.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.0.spawned.borrow_mut().push(Box::pin(future));
    }
}

impl fmt::Debug for Spawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawner").finish_non_exhaustive()
    }
}

/// Sleepers by their deadline; the number tells those of one deadline apart.
type Sleepers = BTreeMap<(Instant, u64), Waker>;

#[derive(Default)]
struct TimerQueue {
    now: Cell<Instant>,
    numbers: Cell<u64>,
    sleepers: RefCell<Sleepers>,
}

/// The timers that tasks wait for. Clones are handles to the same timers.
#[derive(Clone, Default)]
pub struct Timers(Rc<TimerQueue>);

impl Timers {
    /// Timers without sleepers, at the start of the clock.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time to `now` and wakes the sleepers whose deadline has come.
    pub fn advance(&self, now: Instant) {
        self.0.now.set(now);
        loop {
            let mut sleepers = self.0.sleepers.borrow_mut();
            match sleepers.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let waker = first.remove();
                    drop(sleepers);
                    waker.wake();
                }
                _ => break,
            }
        }
    }

    /// The time of the last [`Timers::advance`].
    pub fn now(&self) -> Instant {
        self.0.now.get()
    }

    /// When [`Timers::advance`] next has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        let sleepers = self.0.sleepers.borrow();
        sleepers
            .first_key_value()
            .map(|((deadline, _), _)| *deadline)
    }

    /// Waits until `deadline`.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep {
            queue: Rc::clone(&self.0),
            deadline,
            number: None,
        }
    }

    /// Waits for `span`, from now on.
    pub fn sleep(&self, span: Duration) -> Sleep {
        self.sleep_until(self.now() + span)
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("now", &self.now())
            .field("sleepers", &self.0.sleepers.borrow().len())
            .finish()
    }
}

/// The future of [`Timers::sleep_until`].
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    queue: Rc<TimerQueue>,
    deadline: Instant,
    /// Under which number this sleeper is queued.
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.queue.now.get() >= self.deadline {
            return Poll::Ready(());
        }
        let number = self.number.unwrap_or_else(|| {
            let number = self.queue.numbers.get();
            self.queue.numbers.set(number + 1);
            number
        });
        self.number = Some(number);
        let mut sleepers = self.queue.sleepers.borrow_mut();
        let waker = sleepers
            .entry((self.deadline, number))
            .or_insert_with(|| cx.waker().clone());
        waker.clone_from(cx.waker());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let mut sleepers = self.queue.sleepers.borrow_mut();
            sleepers.remove(&(self.deadline, number));
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
