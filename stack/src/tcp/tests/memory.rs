//! Devices short of pages: peers that pin them must not shut out others.

use super::{
    harness::{Harness, peer},
    *,
};
use crate::{device::RxMemory, wire::tcp::Flags};

#[test]
fn without_memory_data_counts_as_lost_and_acknowledgments_work() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    h.write(id, &[7; 1000]);
    h.sent();
    let ack = iss.wrapping_add(1001);
    h.input(Flags::ACK, peer(1000), ack - 1000, &[1; 1000]);
    h.sent();
    assert_eq!(h.info(id).unacked_bytes, 1000);
    h.memory = RxMemory::Spent;
    h.input(Flags::ACK | Flags::FIN, peer(0), ack, &[1; 1000]);
    assert_eq!(h.one().header.ack, peer(0), "nothing was taken");
    assert_eq!(h.info(id).unacked_bytes, 0, "the acknowledgment was");
    assert_eq!(h.tcp.counters().rcvq_drop, 1);
    assert_eq!(h.tcp.counters().ofo_pruned, 1);
    h.memory = RxMemory::Plenty;
    h.input(Flags::ACK, peer(0), ack, &[1; 1000]);
    h.pass(Duration::from_millis(50));
    assert_eq!(
        h.sent().pop().unwrap().header.ack,
        peer(1001),
        "with the FIN"
    );
    assert_eq!(h.read(id).len(), 1000);
}

#[test]
fn with_little_memory_each_connection_keeps_some() {
    let mut h = Harness::new();
    let (id, iss) = h.established();
    let ack = iss.wrapping_add(1);
    h.memory = RxMemory::Scarce;
    h.input(Flags::ACK, peer(1000), ack, &[1; 1000]);
    assert!(h.one().header.options.sack.is_empty(), "no gaps");
    let mut at = 0;
    for _ in 0..100 {
        h.input(Flags::ACK, peer(at), ack, &[1; 1000]);
        let told = h.sent().pop().map_or(peer(at + 1000), |out| out.header.ack);
        if told == peer(at) {
            break;
        }
        at += 1000;
    }
    assert_eq!(at, 36_000, "a page a segment");
    assert_eq!(h.read(id).len(), 36_000);
    h.input(Flags::ACK, peer(at), ack, &[1; 1000]);
    h.pass(Duration::from_millis(50));
    assert_eq!(h.sent().pop().unwrap().header.ack, peer(at + 1000));
}

/// Peers send what nobody reads, over as many connections as it takes to fill the device's pages
/// several times.
#[test]
fn unread_connections_do_not_make_the_guest_deaf() {
    const PINNING: usize = 40;
    let small = NicConfig {
        pages: 2048,
        ..NicConfig::default()
    };
    let mut network = Network::new();
    let config = |host: u8| crate::stack::Config {
        address: [192, 0, 2, host].into(),
        prefix: 24,
        gateway: None,
        secret: [host; 16],
    };
    let large = NicConfig {
        pages: 1 << 20,
        ..NicConfig::default()
    };
    let a = network.add(large, &config(1), lan());
    let b = network.add(small, &config(2), lan());
    let listener = TcpListener::bind(&b.net, server_addr(), PINNING).unwrap();
    let (got, set) = shared(0);
    network.spawn(async move {
        let mut unread = Vec::new();
        for _ in 0..PINNING {
            unread.push(listener.accept().await.unwrap());
        }
        let (mut honest, _) = listener.accept().await.unwrap();
        set.set(receive_pattern(&mut honest).await);
        drop(unread);
    });
    for _ in 0..PINNING {
        let net = a.net.clone();
        network.spawn(async move {
            let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
            // Ends with the reset at the end.
            while stream.write_all(&[0; 4096]).await.is_ok() {}
        });
    }
    network.run_for(Duration::from_secs(20));
    assert!(b.nic.pages_in_use() > 1024, "{}", b.nic.pages_in_use());
    let net = a.net.clone();
    network.spawn(async move {
        let mut stream = TcpStream::connect(&net, server_addr()).await.unwrap();
        send_pattern(&mut stream, 300_000).await;
        stream.shutdown();
    });
    assert!(
        network.run_tasks(Duration::from_mins(30)),
        "{:?}",
        got.get()
    );
    assert_eq!(got.get(), 300_000);
    assert_eq!(
        b.nic.counters().rx_dropped,
        0,
        "the device always had a page"
    );
    network.run_for(Duration::from_mins(2));
    assert_eq!(b.nic.pages_in_use(), 0);
}
