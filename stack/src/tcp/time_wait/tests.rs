use super::*;
use core::net::{IpAddr, Ipv4Addr};

const LIFE: Duration = Duration::from_mins(1);

fn at(secs: u64) -> Instant {
    Instant::from_micros(secs * 1_000_000)
}

fn closed(remote_port: u16) -> Closed {
    Closed {
        tuple: Tuple {
            local: IpAddr::V4(Ipv4Addr::LOCALHOST),
            remote: IpAddr::V4(Ipv4Addr::LOCALHOST),
            local_port: 80,
            remote_port,
        },
        snd_nxt: SeqNum(1000),
        rcv_nxt: SeqNum(5000),
        window_field: 100,
        rcv_wnd: 100,
        timestamps: Some((70, 0)),
    }
}

fn segment(flags: Flags, seq: u32, timestamp: u32) -> Header {
    let mut header = Header {
        seq,
        flags,
        ..Header::default()
    };
    header.options.timestamps = Some(crate::wire::tcp::Timestamps {
        value: timestamp,
        echo: 0,
    });
    header
}

struct Fixture {
    table: TimeWait,
    secrets: Secrets,
}

impl Fixture {
    fn new() -> Self {
        Self {
            table: TimeWait::new(),
            secrets: Secrets::new([3; 16]),
        }
    }

    fn insert(&mut self, port: u16, now: Instant, max: usize) -> bool {
        self.table
            .insert(closed(port), now + LIFE, max, &self.secrets)
    }

    fn receive(&mut self, port: u16, header: &Header, now: Instant) -> Option<Disposition> {
        let tuple = closed(port).tuple;
        self.table
            .receive(&tuple, header, 0, now, now + LIFE, &self.secrets)
    }
}

#[test]
fn the_oldest_goes_when_there_is_no_room() {
    let mut f = Fixture::new();
    for port in 0..10 {
        assert_eq!(f.insert(port, at(u64::from(port)), 4), port >= 4);
    }
    assert_eq!(f.table.len(), 4);
    assert!(f.table.find(&closed(5).tuple, &f.secrets).is_none());
    assert!(f.table.find(&closed(6).tuple, &f.secrets).is_some());
    assert_eq!(f.table.deadline(), Some(at(66)));
    f.table.expire(at(67), &f.secrets);
    assert_eq!(f.table.len(), 2);
    f.table.expire(at(1000), &f.secrets);
    assert_eq!((f.table.len(), f.table.deadline()), (0, None));
}

#[test]
fn no_room_at_all_remembers_nothing() {
    let mut f = Fixture::new();
    assert!(f.insert(1, at(0), 0));
    assert_eq!(f.table.len(), 0);
}

#[test]
fn a_later_syn_begins_anew_an_earlier_one_does_not() {
    let mut f = Fixture::new();
    f.insert(1, at(0), 9);
    let stale = segment(Flags::SYN, 9000, 69);
    assert!(matches!(
        f.receive(1, &stale, at(1)),
        Some(Disposition::Acknowledge(_))
    ));
    let same = segment(Flags::SYN, 4000, 70);
    assert_eq!(
        f.receive(1, &same, at(1)),
        Some(Disposition::Ignore),
        "limited"
    );
    let newer = segment(Flags::SYN, 10, 71);
    let accept = Disposition::Accept {
        after: SeqNum(1000),
    };
    assert_eq!(f.receive(1, &newer, at(1)), Some(accept));
    assert_eq!(f.receive(1, &newer, at(1)), None, "it is gone");
}

#[test]
fn rfc_1337_resets_do_not_end_it() {
    let mut f = Fixture::new();
    f.insert(1, at(0), 9);
    let reset = segment(Flags::RST, 5000, 80);
    assert_eq!(f.receive(1, &reset, at(1)), Some(Disposition::Ignore));
    assert_eq!(f.table.len(), 1);
}

#[test]
fn a_repeated_fin_is_answered_and_starts_the_time_over() {
    let mut f = Fixture::new();
    f.insert(1, at(0), 9);
    f.insert(2, at(1), 9);
    let fin = segment(Flags::FIN | Flags::ACK, 4999, 80);
    assert!(matches!(
        f.receive(1, &fin, at(30)),
        Some(Disposition::Acknowledge(_))
    ));
    assert_eq!(f.table.deadline(), Some(at(61)), "the other one's");
    f.table.expire(at(61), &f.secrets);
    assert_eq!(f.table.deadline(), Some(at(90)));
    for second in 31..200 {
        f.receive(1, &fin, at(second));
    }
    assert!(f.table.queue.len() <= 2 * f.table.slots.len() + 17);
    assert_eq!(f.table.len(), 1);
}

#[test]
fn old_acknowledgments_are_not_answered() {
    let mut f = Fixture::new();
    f.insert(1, at(0), 9);
    let ack = segment(Flags::ACK, 5000, 80);
    assert_eq!(f.receive(1, &ack, at(1)), Some(Disposition::Ignore));
    let outside = segment(Flags::ACK, 4000, 80);
    assert!(matches!(
        f.receive(1, &outside, at(1)),
        Some(Disposition::Acknowledge(_))
    ));
}
