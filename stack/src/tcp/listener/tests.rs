use super::{super::config::Config, *};

fn listener(local: &str, backlog: usize) -> Listener {
    Listener::new(
        local.parse().unwrap(),
        backlog,
        Options::new(&Config::default()),
    )
}

#[test]
fn both_queues_are_bounded() {
    let mut listener = listener("0.0.0.0:80", 2);
    listener.begin(ConnectionId::new(0, 0));
    assert_eq!(listener.in_the_way(), None);
    listener.begin(ConnectionId::new(1, 0));
    assert!(!listener.takes_syn());
    assert_eq!(listener.in_the_way(), Some(ConnectionId::new(0, 0)));
    listener.establish(ConnectionId::new(0, 0));
    assert!(listener.takes_syn());
    listener.begin(ConnectionId::new(2, 0));
    listener.establish(ConnectionId::new(1, 0));
    listener.establish(ConnectionId::new(2, 0));
    assert!(!listener.takes_established());
    assert_eq!(listener.in_the_way(), None);
    assert_eq!(listener.accept(), Some(ConnectionId::new(0, 0)));
    listener.lost(ConnectionId::new(1, 0));
    listener.begin(ConnectionId::new(8, 0));
    listener.begin(ConnectionId::new(9, 0));
    listener.lost(ConnectionId::new(9, 0));
    assert!(listener.takes_syn());
    assert_eq!(listener.accept(), Some(ConnectionId::new(2, 0)));
    assert_eq!(listener.accept(), None);
}

#[test]
fn unspecified_addresses_stand_for_all() {
    let any = listener("0.0.0.0:80", 1);
    let one = listener("10.0.0.1:80", 1);
    assert!(any.takes("10.0.0.9".parse().unwrap(), 80));
    assert!(!any.takes("10.0.0.9".parse().unwrap(), 81));
    assert!(!one.takes("10.0.0.9".parse().unwrap(), 80));
    assert!(any.conflicts_with(one.local()));
    assert!(one.conflicts_with(any.local()));
    assert!(!one.conflicts_with("10.0.0.2:80".parse().unwrap()));
}
