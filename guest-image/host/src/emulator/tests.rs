use super::*;
use paceline_stack::sim::Loss;
use std::time::Duration;

/// An IPv4 frame with a number in it.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
    bytes[20..24].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Two sockets with a path between them.
fn path(there: Link) -> (OwnedFd, OwnedFd, Emulator) {
    let (left, first) = socket_pair().unwrap();
    let (right, second) = socket_pair().unwrap();
    let emulator = Emulator::start([first, second], [there, Link::default()], 3, true).unwrap();
    (left, right, emulator)
}

/// The next frame, or none within `limit`.
fn receive(from: &OwnedFd, limit: Duration) -> Option<Vec<u8>> {
    let timeout = Timespec::try_from(limit).unwrap();
    poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&timeout)).unwrap();
    let mut buffer = [0; 2000];
    let len = read(from, &mut buffer).ok()?;
    Some(buffer[..len].to_vec())
}

#[test]
fn frames_take_their_time() {
    let (left, right, emulator) = path(Link {
        rate_bps: Some(8_000_000),
        delay: Duration::from_millis(20),
        ..Link::default()
    });
    let sent = Instant::now();
    for number in 0..30 {
        write(&left, &frame(number, 1000)).unwrap();
    }
    let second = Duration::from_secs(1);
    for number in 0..30 {
        assert_eq!(receive(&right, second).unwrap(), frame(number, 1000));
        let least = Duration::from_millis(21 + u64::from(number));
        assert!(sent.elapsed() >= least, "{:?}", sent.elapsed());
    }
    // There is nothing in the way back.
    write(&right, &frame(99, 60)).unwrap();
    assert_eq!(receive(&left, second).unwrap(), frame(99, 60));
    let report = emulator.stop().unwrap();
    assert_eq!(report.links.map(|link| link.packets), [30, 1]);
    assert_eq!(report.lateness.frames, 31);
    assert_eq!(report.capture.len(), 31);
}

#[test]
fn what_is_lost_is_told() {
    let (left, right, emulator) = path(Link {
        loss: Loss::Random { ppm: 500_000 },
        ..Link::default()
    });
    for number in 0..100 {
        write(&left, &frame(number, 100)).unwrap();
    }
    let mut came = 0;
    while receive(&right, Duration::from_millis(200)).is_some() {
        came += 1;
    }
    let report = emulator.stop().unwrap();
    assert_eq!(report.links[0].lost + came, 100);
    assert!((20..80).contains(&came), "{came}");
}

#[test]
fn large_frames_are_refused() {
    let (left, _right, emulator) = path(Link::default());
    write(&left, &frame(0, 1515)).unwrap();
    thread::sleep(Duration::from_millis(100));
    let error = emulator.stop().unwrap_err().to_string();
    assert_eq!(
        error,
        "expected frames of at most 1514 bytes, got one of 1515"
    );
}

#[test]
fn a_receiver_without_room_loses_nothing() {
    let (left, right, emulator) = path(Link::default());
    // More than the socket holds.
    for number in 0..12_000 {
        while write(&left, &frame(number, 1514)).is_err() {
            thread::sleep(Duration::from_millis(1));
        }
    }
    thread::sleep(Duration::from_millis(100));
    for number in 0..12_000 {
        let bytes = receive(&right, Duration::from_secs(1)).unwrap();
        assert_eq!(bytes, frame(number, 1514));
    }
    emulator.stop().unwrap();
}
