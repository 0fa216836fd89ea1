//! Data, both ways, over good and bad networks.

use super::*;

/// Sends `len` bytes from the first host to the second, and as many back; returns the time it
/// took.
pub(super) fn exchange(network: &mut Network, a: &Host, b: &Host, len: usize) -> Duration {
    let listener = TcpListener::bind(&b.net, server_addr(), 4).unwrap();
    let (got_b, count_b) = shared(0);
    let (got_a, count_a) = shared(0);
    network.spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        count_b.set(receive_pattern(&mut reader).await);
        send_pattern(&mut writer, len).await;
    });
    let net = a.net.clone();
    network.spawn(async move {
        let stream = TcpStream::connect(&net, server_addr()).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        send_pattern(&mut writer, len).await;
        writer.shutdown();
        count_a.set(receive_pattern(&mut reader).await);
    });
    let start = network.now();
    assert!(
        network.run_tasks(Duration::from_hours(1)),
        "stuck: {:?} {:?}",
        infos(a),
        infos(b)
    );
    assert_eq!((got_b.get(), got_a.get()), (len, len));
    network.now().since(start)
}

#[test]
fn bulk_both_ways_at_the_rate_of_the_wire() {
    let (mut network, a, b) = Network::pair(NicConfig::default(), lan());
    let took = exchange(&mut network, &a, &b, 20_000_000);
    // 40 MB at 1 Gb/s take 0.32 s, headers and slow start a little more.
    assert!(took < Duration::from_millis(380), "{took:?}");
    let counters = a.net.with(|stack| stack.tcp().counters().clone());
    assert_eq!(counters.retrans_segs, 0);
}

#[test]
fn bulk_without_offloads() {
    let (mut network, a, b) = Network::pair(NicConfig::plain(), lan());
    exchange(&mut network, &a, &b, 2_000_000);
}
