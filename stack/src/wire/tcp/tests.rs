use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

fn emit(header: &Header) -> Vec<u8> {
    let mut out = [0xee; MAX_HEADER_BYTES];
    let len = header.emit(&mut out);
    out[..len].to_vec()
}

fn options() -> impl Strategy<Value = Options> {
    (
        any::<Option<u16>>(),
        any::<Option<u8>>(),
        any::<bool>(),
        any::<Option<(u32, u32)>>(),
        prop::collection::vec(any::<(u32, u32)>(), 0..=MAX_SACK_BLOCKS),
    )
        .prop_map(
            |(mss, window_scale, sack_permitted, timestamps, sack)| Options {
                mss,
                window_scale,
                sack_permitted,
                timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
                sack: sack
                    .into_iter()
                    .map(|(left, right)| SackBlock { left, right })
                    .collect(),
            },
        )
}

fn header() -> impl Strategy<Value = Header> {
    (any::<(u16, u16, u32, u32, u8, u16, u16)>(), options()).prop_map(
        |((src_port, dst_port, seq, ack, flags, window, urgent), options)| Header {
            src_port,
            dst_port,
            seq,
            ack,
            flags: Flags::from_bits_retain(flags),
            window,
            urgent,
            options,
        },
    )
}

#[test]
fn sack_blocks_are_cut_to_the_room_left() {
    let block = SackBlock { left: 1, right: 2 };
    let with = |timestamps| {
        let options = Options {
            timestamps,
            sack: [block; 4].into_iter().collect(),
            ..Options::default()
        };
        let header = Header {
            options,
            ..Header::default()
        };
        Header::parse(&emit(&header)).unwrap().0.options.sack.len()
    };
    assert_eq!(with(None), 4);
    assert_eq!(with(Some(Timestamps { value: 1, echo: 2 })), 3);
}

#[test]
fn options_with_impossible_lengths_end_the_list() {
    for bad in [&[99, 0][..], &[99, 1], &[99, 200], &[99]] {
        let mut bytes = [OPTION_MSS, 4, 5, 0xb4].to_vec();
        bytes.extend_from_slice(bad);
        bytes.extend_from_slice(&[OPTION_SACK_PERMITTED, 2]);
        let options = Options::parse(&bytes);
        assert_eq!(options.mss, Some(1460), "{bad:?}");
        assert!(!options.sack_permitted || bad.len() == 1, "{bad:?}");
    }
}

#[test]
fn unknown_options_and_wrong_sizes_are_skipped() {
    let options = Options::parse(&[
        30,
        4,
        1,
        2, // unknown
        OPTION_MSS,
        3,
        9, // wrong size
        OPTION_SACK,
        9,
        1,
        2,
        3,
        4,
        5,
        6,
        7, // not whole blocks
        OPTION_WINDOW_SCALE,
        3,
        7,
        OPTION_END,
        OPTION_SACK_PERMITTED,
        2,
    ]);
    let expected = Options {
        window_scale: Some(7),
        ..Options::default()
    };
    assert_eq!(options, expected);
}

#[test]
fn header_length_is_bounded_both_ways() {
    let mut bytes = emit(&Header::default());
    bytes[12] = 4 << 4;
    assert!(matches!(
        Header::parse(&bytes),
        Err(ParseError::Length { .. })
    ));
    bytes[12] = 6 << 4;
    let truncated = ParseError::Truncated {
        expected_bytes: 24,
        got_bytes: 20,
    };
    assert_eq!(Header::parse(&bytes), Err(truncated));
}

proptest! {
    #[test]
    fn parses_what_it_emits(header in header()) {
        let bytes = emit(&header);
        let (mut parsed, len) = Header::parse(&bytes).unwrap();
        prop_assert_eq!(len, bytes.len());
        let kept = parsed.options.sack.len();
        prop_assert_eq!(&parsed.options.sack[..], &header.options.sack[..kept]);
        parsed.options.sack = header.options.sack.clone();
        prop_assert_eq!(parsed, header);
    }

    #[test]
    fn takes_any_bytes(bytes in any::<Vec<u8>>()) {
        if let Ok((_, len)) = Header::parse(&bytes) {
            prop_assert!((MIN_HEADER_BYTES..=bytes.len()).contains(&len));
        }
    }

    /// etherparse reads from our header what we put there.
    #[test]
    fn etherparse_agrees(header in header()) {
        let bytes = emit(&header);
        let other = etherparse::TcpHeaderSlice::from_slice(&bytes).unwrap();
        prop_assert_eq!(other.sequence_number(), header.seq);
        prop_assert_eq!(other.acknowledgment_number(), header.ack);
        prop_assert_eq!(other.window_size(), header.window);
        prop_assert_eq!(other.syn(), header.flags.contains(Flags::SYN));
        prop_assert_eq!(other.ece(), header.flags.contains(Flags::ECE));
        let mut seen = Options::default();
        for option in other.options_iterator() {
            use etherparse::TcpOptionElement as E;
            match option.unwrap() {
                E::MaximumSegmentSize(mss) => seen.mss = Some(mss),
                E::WindowScale(shift) => seen.window_scale = Some(shift),
                E::SelectiveAcknowledgementPermitted => seen.sack_permitted = true,
                E::Timestamp(value, echo) => seen.timestamps = Some(Timestamps { value, echo }),
                E::SelectiveAcknowledgement(first, rest) => {
                    let blocks = [Some(first)].into_iter().chain(rest).flatten();
                    seen.sack = blocks.map(|(left, right)| SackBlock { left, right }).collect();
                }
                E::Noop => {}
            }
        }
        prop_assert_eq!(Header::parse(&bytes).unwrap().0.options, seen);
    }
}
