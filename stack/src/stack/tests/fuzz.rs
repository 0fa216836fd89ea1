//! Frames that nobody sane would send.

use super::path_mtu::too_big;
use super::*;
use proptest::prelude::*;

/// A valid frame, bytes of which may then be changed.
fn valid_frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop::collection::vec(any::<u8>(), 0..2000);
    (0..8_u8, payload, any::<u16>()).prop_map(|(kind, payload, word)| match kind {
        0 => ping(&payload),
        1 => udp_frame(word, &payload),
        2 => request(Ipv4Addr::from_bits(0xc000_0200 | u32::from(word)), OURS),
        3 => reply(PEER),
        4 => too_big(&udp_frame(9, b"original"), word),
        5 => {
            let header = ipv4::Header {
                id: word & 3,
                more_fragments: word & 4 == 0,
                fragment_offset_bytes: word & 0x1ff8,
                ..ip_header(icmpv4::PROTOCOL, payload.len())
            };
            ip_frame(&header, &payload)
        }
        6 => ip_frame(&ip_header(6, payload.len()), &payload),
        _ => {
            let mut frame = Vec::new();
            PacketBuilder::ethernet2(PEER_MAC, OUR_MAC)
                .ipv4(PEER.octets(), OURS.octets(), 64)
                .tcp(word, 80, u32::from(word) << 9, 1000)
                .syn()
                .write(&mut frame, &payload)
                .unwrap();
            frame
        }
    })
}

/// Fills in the IPv4 header's checksum, so that damage behind it is reached.
fn mend(frame: &mut [u8]) {
    if let Some(header) = frame.get_mut(14..34) {
        header[10..12].fill(0);
        let sum = checksum(header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever arrives, the stack neither panics, nor answers a frame with many, nor keeps pages.
    #[test]
    fn survives_any_frames(
        frames in prop::collection::vec(
            (valid_frame(), prop::collection::vec((any::<usize>(), any::<u8>()), 0..4), any::<bool>()),
            1..20,
        ),
        plain: bool,
    ) {
        let nic = if plain { NicConfig::plain() } else { NicConfig::default() };
        let mut bench = Bench::new(nic);
        bench.stack.udp_mut().bind(9).unwrap();
        for (mut frame, damage, mended) in frames {
            for (at, byte) in damage {
                let at = at % frame.len();
                frame[at] = byte;
            }
            if mended {
                mend(&mut frame);
            }
            let sent = bench.exchange(&frame);
            prop_assert!(sent.len() <= 50, "{} frames", sent.len());
            bench.advance(Duration::from_millis(100));
        }
        bench.advance(Duration::from_mins(2));
        bench.poll();
        bench.stack.udp_mut().close(0);
        prop_assert_eq!(bench.nic.pages_in_use(), 0);
    }

    #[test]
    fn survives_any_bytes(frame in prop::collection::vec(any::<u8>(), 0..200), to_us: bool) {
        let mut bench = Bench::new(NicConfig::default());
        let mut frame = frame;
        if to_us && frame.len() >= 14 {
            frame[..6].copy_from_slice(&OUR_MAC);
            frame[6] &= !1;
            frame[12..14].copy_from_slice(&[8, 0]);
        }
        bench.receive(&frame);
        bench.poll();
    }

    #[test]
    fn fragments_in_any_order_make_the_datagram(
        len in 1_usize..20_000,
        part in 1_usize..185,
        seed: u64,
    ) {
        let mut bench = Bench::acquainted(NicConfig::plain());
        let payload = bytes(len);
        // Not more fragments than reassembly holds.
        let part = (part * 8).max((len / 100).next_multiple_of(8));
        let mut parts = fragments(1, icmpv4::PROTOCOL, &echo_message(&payload), part);
        // Fisher-Yates, from a seed that proptest can shrink.
        let mut state = seed | 1;
        for i in (1..parts.len()).rev() {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            parts.swap(i, (state >> 33) as usize % (i + 1));
        }
        let mut frames = Vec::new();
        for part in parts {
            frames.extend(bench.exchange(&part));
        }
        assert_echo_reply(&reassemble(&frames), &payload);
        prop_assert_eq!(bench.nic.pages_in_use(), 0);
    }
}
