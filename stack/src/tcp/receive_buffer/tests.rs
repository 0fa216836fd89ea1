use super::*;

const MOST: u32 = 32 << 20;

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

/// A buffer on a path of 10 ms.
fn buffer(bytes: u32) -> ReceiveBuffer {
    let mut buffer = ReceiveBuffer::new(bytes, at(0));
    buffer.rtt.sample(10_000);
    buffer
}

#[test]
fn keeps_ahead_of_a_sender_that_speeds_up() {
    let mut buffer = buffer(64 << 10);
    let mut read = 15_000;
    let mut now = 0;
    while read < 4 << 20 {
        now += 10;
        buffer.on_read(at(now), read as usize, 0, MOST, 0);
        read *= 2;
        assert!(
            buffer.bytes >= (2 * read).min(MOST),
            "{} for {read}",
            buffer.bytes
        );
    }
}

#[test]
fn holds_twice_what_is_read_and_no_more() {
    let mut buffer = buffer(64 << 10);
    for round in 1..100 {
        buffer.on_read(at(10 * round), 1_000_000, 0, MOST, 0);
    }
    // Six times when it all came in the first round trip; nothing after.
    assert_eq!(buffer.bytes, 6_000_000);
    assert_eq!(buffer.space(), 1_000_000);
    buffer.on_read(at(1000), 1_000_100, 50, MOST, 0);
    assert_eq!(buffer.bytes, 6_000_000, "within");
}

#[test]
fn grows_neither_for_slow_readers_nor_without_memory_nor_beyond_the_limit() {
    let mut slow = buffer(64 << 10);
    for round in 1..100 {
        slow.on_read(at(10 * round), 60_000, 60_000, MOST, 0);
    }
    assert_eq!(slow.bytes, 64 << 10, "as much waits as is read");
    let mut scarce = buffer(64 << 10);
    scarce.set_memory(RxMemory::Scarce);
    scarce.on_read(at(10), 1 << 20, 0, MOST, 0);
    assert_eq!(scarce.bytes, 64 << 10);
    let mut limited = buffer(64 << 10);
    limited.on_read(at(10), 1 << 20, 0, 100_000, 0);
    assert_eq!(limited.bytes, 100_000);
    let mut unmeasured = ReceiveBuffer::new(64 << 10, at(0));
    unmeasured.on_read(at(10), 1 << 20, 0, MOST, 0);
    assert_eq!(unmeasured.bytes, 64 << 10);
    let mut early = buffer(64 << 10);
    early.on_read(at(9), 1 << 20, 0, MOST, 0);
    assert_eq!(early.bytes, 64 << 10, "a round trip is not over");
}

#[test]
fn short_paths_and_gaps() {
    assert_eq!(wanted(100_000, 0, 500), 300_000);
    assert_eq!(wanted(100_000, 100_000, 5000), 200_000);
    assert_eq!(wanted(100_000, 50_000, 5000), 600_000);
    let mut gap = buffer(64 << 10);
    gap.on_read(at(10), 100_000, 0, MOST, 70_000);
    assert_eq!(gap.bytes, 670_000);
    let most = u64::from(MAX_RCVBUF_BYTES);
    assert_eq!(wanted(MAX_RCVBUF_BYTES, 0, MAX_RTT_US), 6 * most);
}

#[test]
fn round_trips_by_the_window_only_lower_the_estimate() {
    let mut rtt = ReceiverRtt::default();
    assert_eq!(rtt.us(), None);
    rtt.upper_bound(80_000);
    rtt.upper_bound(90_000);
    assert_eq!(rtt.us(), Some(80_000));
    rtt.upper_bound(20_000);
    assert_eq!(rtt.us(), Some(20_000));
    rtt.sample(100_000);
    assert_eq!(rtt.us(), Some(30_000));
    rtt.sample(u64::MAX);
    assert!(rtt.us() <= Some(MAX_RTT_US));
}
