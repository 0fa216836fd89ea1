use super::{describe, describe_spec};
use crate::{
    script::{
        ast::{Action, SegmentSpec},
        flow::Flow,
        live::LiveSegment,
        parser::parse,
    },
    time::Instant,
    wire::tcp::{Flags, Header},
};

fn spec(text: &str) -> SegmentSpec {
    match parse(text).unwrap().events.remove(0).action {
        Action::Segment(spec) => spec,
        other => panic!("{other:?}"),
    }
}

#[test]
fn expectations_are_described_as_they_were_written() {
    for text in [
        "S. 0:0(0) ack 1 win 5 <mss 1460,sackOK,wscale 7>",
        "P. 1:1001(1000) ack 1 <...>",
        "[ect0] . 1:1(0) ack 9 <sack 1:2 3:4>",
        "R 7:7(0)",
        ". 1:1(0) ack 1 <TS val 1 ecr 2>",
        "80 > 5000 FSRPUEW. 1:1(0) ack 1",
    ] {
        assert_eq!(describe_spec(&spec(&alloc::format!("0 > {text}"))), text);
    }
}

#[test]
fn packets_are_described_in_the_scripts_numbers() {
    let mut flow = Flow::new(0, 80);
    flow.learn_local_isn(5_000);
    let live = LiveSegment {
        at: Instant::ZERO,
        header: Header {
            seq: 5_001,
            ack: flow.peer_to_wire(11, false),
            flags: Flags::ACK | Flags::PSH,
            window: 9,
            ..Header::default()
        },
        ecn: 3,
        payload_bytes: 20,
    };
    assert_eq!(describe(&flow, &live), "[ce] P. 1:21(20) ack 11 win 9");
}
