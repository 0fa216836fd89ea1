use super::Flow;

#[test]
fn numbers_go_to_the_wire_and_back() {
    let mut flow = Flow::new(3, 80);
    flow.peer_syn(500);
    flow.learn_local_isn(0xffff_fff0);
    flow.script_syn(7);
    for syn in [false, true] {
        for seq in [0, 1, 500, u32::MAX] {
            assert_eq!(flow.local_to_script(flow.local_to_wire(seq, syn), syn), seq);
            assert_eq!(flow.peer_to_script(flow.peer_to_wire(seq, syn), syn), seq);
        }
    }
    // The SYN has the script's number, what follows counts from it.
    assert_eq!(flow.local_to_wire(7, true), 0xffff_fff0);
    assert_eq!(flow.local_to_wire(1, false), 0xffff_fff1);
    assert_eq!(flow.peer_to_wire(501, true), flow.peer_to_wire(1, false));
    assert_eq!(flow.peer_offset(flow.peer_to_wire(1, false)), 0);
}

#[test]
fn a_second_syn_starts_the_numbers_anew() {
    let mut flow = Flow::new(0, 80);
    flow.peer_syn(0);
    let second = flow.peer_to_wire(90_000, true);
    flow.peer_syn_taken(second);
    assert_eq!(flow.peer_to_wire(90_000, true), second);
    assert_eq!(flow.peer_to_wire(1, false), second.wrapping_add(1));
}

#[test]
fn echoes_are_of_the_timestamp_that_was_seen() {
    let mut flow = Flow::new(0, 80);
    assert_eq!(flow.echo_to_wire(5), 5);
    flow.note_timestamp(100, 7_000);
    flow.note_timestamp(200, 7_101);
    assert_eq!(flow.echo_to_wire(200), 7_101);
    assert_eq!(flow.echo_to_wire(150), 7_050);
    assert_eq!(flow.timestamp_to_script(7_060), Some(160));
}
