use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

fn packet() -> impl Strategy<Value = Packet> {
    any::<(bool, [u8; 6], [u8; 4], [u8; 6], [u8; 4])>().prop_map(
        |(request, sender_mac, sender, target_mac, target)| Packet {
            operation: if request {
                Operation::Request
            } else {
                Operation::Reply
            },
            sender_mac: Mac(sender_mac),
            sender: sender.into(),
            target_mac: Mac(target_mac),
            target: target.into(),
        },
    )
}

proptest! {
    #[test]
    fn parses_what_it_emits(packet in packet()) {
        let mut bytes = [0; PACKET_BYTES];
        packet.emit(&mut bytes);
        prop_assert_eq!(Packet::parse(&bytes), Ok(packet));
    }

    #[test]
    fn smoltcp_agrees(packet in packet()) {
        use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr};
        let mut bytes = [0; PACKET_BYTES];
        packet.emit(&mut bytes);
        let ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr,
            source_protocol_addr,
            target_hardware_addr,
            target_protocol_addr,
        } = ArpRepr::parse(&ArpPacket::new_checked(&bytes[..]).unwrap()).unwrap()
        else {
            unreachable!("smoltcp knows one kind of ARP")
        };
        prop_assert_eq!(
            operation == ArpOperation::Request,
            packet.operation == Operation::Request
        );
        prop_assert_eq!(source_hardware_addr.0, packet.sender_mac.0);
        prop_assert_eq!(source_protocol_addr, packet.sender);
        prop_assert_eq!(target_hardware_addr.0, packet.target_mac.0);
        prop_assert_eq!(target_protocol_addr, packet.target);
    }

    #[test]
    fn takes_any_bytes(bytes in any::<Vec<u8>>()) {
        let _ = Packet::parse(&bytes);
    }

    #[test]
    fn refuses_other_links_and_protocols(packet in packet(), at in 0_usize..8, bit in 0_u32..8) {
        let mut bytes = [0; PACKET_BYTES];
        packet.emit(&mut bytes);
        bytes[at] ^= 1_u8 << bit;
        // Flipping the operation's two low bits may make it the other one.
        let other = Packet::parse(&bytes).is_ok_and(|p| p.operation != packet.operation);
        prop_assert!(other || Packet::parse(&bytes).is_err());
    }
}
