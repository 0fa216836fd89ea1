//! What routers say of the path's MTU, truly or not (RFC 1191, RFC 5927).

use super::*;
use crate::tcp::Options;
use core::task::{Poll, Waker};
use etherparse::TcpOptionElement;

/// A router's complaint about a datagram of ours.
pub(super) fn too_big(original: &[u8], mtu_bytes: u16) -> Vec<u8> {
    let [high, low] = mtu_bytes.to_be_bytes();
    let mut message = vec![icmpv4::UNREACHABLE, icmpv4::CODE_FRAGMENTATION_NEEDED];
    message.extend_from_slice(&[0, 0, 0, 0, high, low]);
    message.extend_from_slice(&original[14..14 + 28]);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    ip_frame(&ip_header(icmpv4::PROTOCOL, message.len()), &message)
}

#[test]
fn a_smaller_path_mtu_is_learned_if_the_datagram_was_ours() {
    let mut bench = Bench::acquainted(NicConfig::default());
    bench.stack.udp_mut().bind(5000).unwrap();
    let to = core::net::SocketAddr::new(PEER.into(), 53);
    let send = |bench: &mut Bench, port| {
        bench.stack.udp_send(port, &bytes(1400), to).unwrap();
        bench.poll()
    };
    let original = send(&mut bench, 5000);
    assert_eq!(original.len(), 1);
    let header = |frame: &[u8]| ipv4::Header::parse(&frame[14..]).unwrap().0;
    assert!(header(&original[0]).dont_fragment);
    // Quoted with a port that nobody has: forged.
    let foreign = send(&mut bench, 5001);
    bench.exchange(&too_big(&foreign[0], 600));
    assert_eq!(send(&mut bench, 5000).len(), 1);
    bench.exchange(&too_big(&original[0], 600));
    let frames = send(&mut bench, 5000);
    assert_eq!(frames.len(), 3);
    assert!(frames.iter().all(|frame| frame.len() <= 614));
    assert_eq!(&reassemble(&frames)[8..], bytes(1400));
    // Fragments share an identification that differs from the next datagram's.
    let next = send(&mut bench, 5000);
    assert!(frames.iter().all(|f| !header(f).dont_fragment));
    assert!(frames.iter().all(|f| header(f).id == header(&frames[0]).id));
    assert_ne!(header(&next[0]).id, header(&frames[0]).id);
    // A silent router's MTU is guessed; absurd ones are bounded (RFC 5927 §7.2).
    bench.exchange(&too_big(&original[0], 1));
    assert!(
        send(&mut bench, 5000)
            .iter()
            .all(|frame| frame.len() <= 566)
    );
    bench.advance(Duration::from_mins(10));
    bench.exchange(&reply(PEER));
    bench.exchange(&too_big(&original[0], 0));
    assert!(
        send(&mut bench, 5000)
            .iter()
            .all(|frame| frame.len() <= 1006 + 14)
    );
}

/// A router that keeps on claiming an absurd MTU has each byte sent anew once, not every time.
#[test]
fn an_absurd_path_mtu_is_no_reason_to_send_anew() {
    let mut bench = Bench::acquainted(NicConfig::default());
    let waker = Waker::noop();
    let local = core::net::SocketAddr::new(OURS.into(), 80);
    let (tcp, _) = bench.stack.tcp_and_device();
    let listener = tcp.listen(local, 1, Options::new(tcp.config())).unwrap();
    let segment = |ack: Option<u32>| {
        let mut frame = Vec::new();
        let builder =
            PacketBuilder::ethernet2(PEER_MAC, OUR_MAC).ipv4(PEER.octets(), OURS.octets(), 64);
        match ack {
            None => builder
                .tcp(5000, 80, 1000, 60_000)
                .syn()
                .options(&[TcpOptionElement::MaximumSegmentSize(1460)])
                .unwrap(),
            Some(ack) => builder.tcp(5000, 80, 1001, 60_000).ack(ack),
        }
        .write(&mut frame, &[])
        .unwrap();
        frame
    };
    let answer = bench.exchange(&segment(None));
    let (header, _) = tcp::Header::parse(&answer[0][34..]).unwrap();
    bench.exchange(&segment(Some(header.seq + 1)));
    let (tcp, device) = bench.stack.tcp_and_device();
    let Poll::Ready(Ok((id, ..))) = tcp.poll_accept(listener, waker) else {
        panic!("no connection");
    };
    let written = tcp.poll_write(id, waker, &bytes(1000), &mut || device.alloc_page());
    assert_eq!(written, Poll::Ready(Ok(1000)));
    let original = bench.poll();
    assert_eq!(original.len(), 1);
    assert_eq!(bench.exchange(&too_big(&original[0], 68)).len(), 2);
    for _ in 0..3 {
        let again = bench.exchange(&too_big(&original[0], 68));
        assert_eq!(again.len(), 0);
    }
}
