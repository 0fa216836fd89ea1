use super::*;

const BOTH: Flags = Flags::ECE.union(Flags::CWR);

fn agreed() -> Ecn {
    let mut ecn = Ecn::active(EcnMode::On);
    ecn.receive_syn(Flags::SYN | Flags::ACK | Flags::ECE, EcnMode::On);
    assert!(ecn.is_on());
    ecn
}

#[test]
fn who_asks_whom() {
    for (mode, asks, answers) in [
        (EcnMode::Off, false, false),
        (EcnMode::On, true, true),
        (EcnMode::Passive, false, true),
    ] {
        let asked = Ecn::active(mode).syn_flags(false);
        assert_eq!(asked, if asks { BOTH } else { Flags::empty() });
        let mut ecn = Ecn::default();
        ecn.receive_syn(Flags::SYN | BOTH, mode);
        assert_eq!(ecn.is_on(), answers, "{mode:?}");
        assert_eq!(ecn.syn_ack_flags().contains(Flags::ECE), answers);
    }
}

#[test]
fn only_the_right_answer_is_one() {
    for (flags, expected) in [
        (Flags::empty(), false),
        (Flags::ECE, true),
        (Flags::CWR, false),
        (BOTH, false),
    ] {
        let mut ecn = Ecn::active(EcnMode::On);
        ecn.receive_syn(Flags::SYN | Flags::ACK | flags, EcnMode::On);
        assert_eq!(ecn.is_on(), expected, "{flags:?}");
    }
    let mut ecn = Ecn::active(EcnMode::Passive);
    ecn.receive_syn(Flags::SYN | Flags::ACK | Flags::ECE, EcnMode::Passive);
    assert!(!ecn.is_on(), "nobody asked");
    for flags in [Flags::empty(), Flags::ECE, Flags::CWR] {
        let mut ecn = Ecn::default();
        ecn.receive_syn(Flags::SYN | flags, EcnMode::On);
        assert!(!ecn.is_on(), "{flags:?} is no question");
    }
}

#[test]
fn a_syn_sent_again_does_not_ask() {
    let mut ecn = Ecn::active(EcnMode::On);
    assert_eq!(ecn.syn_flags(true), Flags::empty());
    ecn.receive_syn(Flags::SYN | Flags::ACK | Flags::ECE, EcnMode::On);
    assert!(!ecn.is_on());
}

#[test]
fn a_mark_is_echoed_until_it_is_heard() {
    let mut ecn = agreed();
    assert_eq!(ecn.receive_data(Flags::ACK, ECT0), Arrival::Plain);
    assert_eq!(ecn.ack_flags(), Flags::empty());
    assert_eq!(ecn.receive_data(Flags::ACK, CE), Arrival::Urgent);
    assert_eq!(ecn.receive_data(Flags::ACK, CE), Arrival::Plain, "known");
    assert_eq!(ecn.receive_data(Flags::ACK, ECT0), Arrival::Plain);
    assert_eq!(ecn.ack_flags(), Flags::ECE);
    let heard = Flags::ACK | Flags::CWR;
    assert_eq!(ecn.receive_data(heard, ECT0), Arrival::Urgent);
    assert_eq!(ecn.ack_flags(), Flags::empty());
    // The announcement itself may be marked.
    assert_eq!(ecn.receive_data(heard, CE), Arrival::Urgent);
    assert_eq!(ecn.ack_flags(), Flags::ECE);
}

#[test]
fn without_agreement_nothing_is_marked_or_heard() {
    let mut ecn = Ecn::default();
    assert_eq!(ecn.field(), 0);
    assert_eq!(ecn.receive_data(Flags::ACK, CE), Arrival::Plain);
    assert_eq!(ecn.ack_flags(), Flags::empty());
    assert!(!ecn.hears_echo(Flags::ACK | Flags::ECE, SeqNum(0)));
    ecn.on_reduction();
    assert!(!ecn.announces());
}

/// RFC 3168 §6.1.2: once a window of data, however often the peer says so.
#[test]
fn an_echo_is_heeded_until_the_peer_has_heard() {
    let mut ecn = agreed();
    assert_eq!(ecn.field(), ECT0);
    let echo = Flags::ACK | Flags::ECE;
    assert!(!ecn.hears_echo(Flags::ACK, SeqNum(1000)));
    assert!(ecn.hears_echo(echo, SeqNum(1000)));
    ecn.on_reduction();
    assert!(ecn.announces());
    assert!(!ecn.hears_echo(echo, SeqNum(2000)), "not announced yet");
    ecn.announced(SeqNum(6000));
    assert!(!ecn.announces());
    assert!(!ecn.hears_echo(echo, SeqNum(5000)), "not heard yet");
    ecn.announced(SeqNum(7000));
    assert!(ecn.hears_echo(echo, SeqNum(6000)), "a new mark");
}

#[test]
fn an_undone_reduction_is_not_announced() {
    let mut ecn = agreed();
    ecn.on_reduction();
    ecn.withdraw();
    assert!(!ecn.announces());
}
