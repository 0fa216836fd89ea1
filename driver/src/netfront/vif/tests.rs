use super::*;

#[test]
fn mac_addresses_are_parsed_strictly() {
    assert_eq!(
        parse_mac("00:16:3e:Ab:cD:ff"),
        Some([0x00, 0x16, 0x3e, 0xab, 0xcd, 0xff])
    );
    for wrong in [
        "",
        ":",
        "00:16:3e:01:02",
        "00:16:3e:01:02:03:",
        "00:16:3e:01:02:3",
        "00:16:3e:01:02:003",
        "00-16-3e-01-02-03",
        "+1:16:3e:01:02:03",
        "é0:16:3e:01:02:03",
    ] {
        assert_eq!(parse_mac(wrong), None, "{wrong:?}");
    }
}

#[test]
fn states_keep_their_numbers() {
    for number in 0..=8 {
        assert_eq!(XenbusState::from_number(number) as u32, number);
    }
    assert_eq!(XenbusState::from_number(9), XenbusState::Unknown);
}
