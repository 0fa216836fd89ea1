use super::*;
use core::{future::poll_fn, pin::pin};

const MS: Duration = Duration::from_millis(1);

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

/// Yields to the other tasks once.
async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if core::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn runs_a_task_to_its_end() {
    let mut executor = Executor::new();
    let done = Rc::new(Cell::new(false));
    let flag = Rc::clone(&done);
    executor.spawner().spawn(async move {
        yield_now().await;
        flag.set(true);
    });
    assert_eq!(executor.tasks(), 1);
    assert!(!executor.run());
    assert!(done.get());
    assert_eq!(executor.tasks(), 0);
}

#[test]
fn a_busy_task_leaves_the_main_loop_its_turn() {
    let mut executor = Executor::new();
    executor.spawner().spawn(async {
        loop {
            yield_now().await;
        }
    });
    assert!(executor.run());
    assert!(executor.run());
}

#[test]
fn a_task_that_is_not_woken_is_not_polled() {
    let mut executor = Executor::new();
    let polls = Rc::new(Cell::new(0));
    let count = Rc::clone(&polls);
    let waker = Rc::new(RefCell::new(None));
    let slot = Rc::clone(&waker);
    executor.spawner().spawn(poll_fn(move |cx| {
        count.set(count.get() + 1);
        *slot.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }));
    assert!(!executor.run());
    assert!(!executor.run());
    assert_eq!(polls.get(), 1);
    waker.borrow().as_ref().unwrap().wake_by_ref();
    assert!(!executor.run());
    assert_eq!(polls.get(), 2);
}

#[test]
fn tasks_start_tasks() {
    let mut executor = Executor::new();
    let spawner = executor.spawner();
    let ran = Rc::new(Cell::new(false));
    let flag = Rc::clone(&ran);
    executor.spawner().spawn(async move {
        spawner.spawn(async move { flag.set(true) });
    });
    assert!(!executor.run());
    assert!(ran.get());
}

#[test]
fn a_waker_may_outlive_its_task() {
    let mut executor = Executor::new();
    let waker = Rc::new(RefCell::new(None));
    let slot = Rc::clone(&waker);
    executor.spawner().spawn(poll_fn(move |cx| {
        *slot.borrow_mut() = Some(cx.waker().clone());
        Poll::Ready(())
    }));
    assert!(!executor.run());
    waker.borrow_mut().take().unwrap().wake();
    assert!(!executor.run());
}

#[test]
fn sleepers_wake_in_order_and_on_time() {
    let mut executor = Executor::new();
    let timers = Timers::new();
    let woken = Rc::new(RefCell::new(Vec::new()));
    for ms in [30, 10, 20, 10] {
        let (timers, woken) = (timers.clone(), Rc::clone(&woken));
        executor.spawner().spawn(async move {
            timers.sleep(ms * MS).await;
            woken.borrow_mut().push(ms);
        });
    }
    executor.run();
    assert_eq!(timers.next_deadline(), Some(at(10)));
    timers.advance(Instant::from_micros(9_999));
    executor.run();
    assert!(woken.borrow().is_empty());
    timers.advance(at(10));
    executor.run();
    assert_eq!(*woken.borrow(), [10, 10]);
    timers.advance(at(100));
    executor.run();
    assert_eq!(woken.borrow().len(), 4);
    assert_eq!(timers.next_deadline(), None);
}

#[test]
fn a_dropped_sleep_leaves_nothing_behind() {
    let timers = Timers::new();
    {
        let mut sleep = pin!(timers.sleep(MS));
        let mut context = Context::from_waker(Waker::noop());
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        assert_eq!(timers.next_deadline(), Some(at(1)));
    }
    assert_eq!(timers.next_deadline(), None);
}
