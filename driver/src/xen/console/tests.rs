use super::*;
use crate::xen::fake::FakeXen;
use alloc::vec::Vec;

/// The console and the daemon's end of it.
struct Fixture {
    xen: FakeXen,
    page: NonNull<u8>,
    console: PvConsole,
}

impl Fixture {
    fn new(start: u32) -> Self {
        let xen = FakeXen::new();
        let (page, port) = xen.console_page();
        for offset in [
            offset::IN_CONS,
            offset::IN_PROD,
            offset::OUT_CONS,
            offset::OUT_PROD,
        ] {
            word(page, offset).store(start, Ordering::Relaxed);
        }
        // SAFETY: the page lives as long as `xen`.
        let console = unsafe { PvConsole::new(page, port) };
        Self { xen, page, console }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        word(self.page, offset)
    }

    /// Takes up to `max` bytes of output, as the daemon does.
    fn drain(&self, max: usize) -> Vec<u8> {
        let prod = self.word(offset::OUT_PROD).load(Ordering::Acquire);
        let cons = self.word(offset::OUT_CONS).load(Ordering::Acquire);
        let count = max.min(prod.wrapping_sub(cons) as usize);
        let taken = (0..count)
            .map(|i| cons.wrapping_add(i as u32) % OUT_BYTES)
            .map(|i| {
                self.console
                    .byte(offset::OUT + i as usize)
                    .load(Ordering::Relaxed)
            })
            .collect();
        self.word(offset::OUT_CONS)
            .store(cons.wrapping_add(count as u32), Ordering::Release);
        taken
    }

    /// Types `bytes`.
    fn feed(&self, bytes: &[u8]) {
        let prod = self.word(offset::IN_PROD).load(Ordering::Acquire);
        for (i, byte) in bytes.iter().enumerate() {
            let index = prod.wrapping_add(i as u32) % IN_BYTES;
            self.console
                .byte(offset::IN + index as usize)
                .store(*byte, Ordering::Relaxed);
        }
        self.word(offset::IN_PROD)
            .store(prod.wrapping_add(bytes.len() as u32), Ordering::Release);
    }
}

fn word<'a>(page: NonNull<u8>, offset: usize) -> &'a AtomicU32 {
    // SAFETY: the offset lies in the page, which the fixture's hypervisor keeps.
    unsafe { AtomicU32::from_ptr(page.as_ptr().add(offset).cast()) }
}

#[test]
fn output_arrives_in_order_wherever_the_indices_start() {
    for start in [0, 1000, u32::MAX - 700] {
        let f = Fixture::new(start);
        let text: Vec<u8> = (0..5000).map(|i| (i % 251) as u8).collect();
        let mut seen = Vec::new();
        let mut rest = &text[..];
        while !rest.is_empty() {
            let count = f.console.write(&f.xen, rest).unwrap();
            rest = &rest[count..];
            seen.extend(f.drain(777));
        }
        seen.extend(f.drain(usize::MAX));
        assert_eq!(seen, text);
        assert_eq!(f.console.pending_bytes(), 0);
        assert!(f.xen.take_sends(f.console.port()) > 0);
    }
}

#[test]
fn a_daemon_that_sleeps_costs_output_but_not_time() {
    let f = Fixture::new(0);
    let mut pauses = 0;
    f.console
        .write_all(&f.xen, &[b'x'; 3000], 10, || pauses += 1);
    assert_eq!(pauses, 10);
    assert_eq!(f.console.dropped_bytes(), 3000 - 2048);
    assert_eq!(f.console.pending_bytes(), 2048);
    // A full ring is no reason to notify.
    f.xen.take_sends(f.console.port());
    assert_eq!(f.console.write(&f.xen, b"y"), Ok(0));
    assert_eq!(f.xen.take_sends(f.console.port()), 0);
}

#[test]
fn a_daemon_that_wakes_up_gets_all() {
    let f = Fixture::new(0);
    let mut seen = Vec::new();
    f.console
        .write_all(&f.xen, &[b'x'; 6000], 10, || seen.extend(f.drain(2000)));
    seen.extend(f.drain(usize::MAX));
    assert_eq!(seen.len(), 6000);
    assert_eq!(f.console.dropped_bytes(), 0);
}

#[test]
fn input_is_read_in_pieces() {
    let f = Fixture::new(u32::MAX - 3);
    f.feed(b"reboot\n");
    let mut buffer = [0; 4];
    assert_eq!(f.console.read(&f.xen, &mut buffer), Ok(4));
    assert_eq!(&buffer, b"rebo");
    assert_eq!(f.console.read(&f.xen, &mut buffer), Ok(3));
    assert_eq!(&buffer[..3], b"ot\n");
    assert_eq!(f.console.read(&f.xen, &mut buffer), Ok(0));
    assert_eq!(f.xen.take_sends(f.console.port()), 2);
    assert_eq!(f.console.read(&f.xen, &mut []), Ok(0));
}

#[test]
fn indices_that_jump_are_refused() {
    let f = Fixture::new(0);
    f.word(offset::IN_PROD).store(1025, Ordering::Relaxed);
    let mut buffer = [0; 2000];
    assert_eq!(
        f.console.read(&f.xen, &mut buffer),
        Err(ConsoleError::RingIndex {
            name: "in_prod",
            theirs: 1025,
            ours: 0
        })
    );
    f.word(offset::OUT_CONS).store(1, Ordering::Relaxed);
    assert!(f.console.write(&f.xen, b"x").is_err());
    f.console
        .write_all(&f.xen, b"xyz", u32::MAX, || unreachable!());
    assert_eq!(f.console.dropped_bytes(), 3);
    assert_eq!(f.console.pending_bytes(), 0);
}
