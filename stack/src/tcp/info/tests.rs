use super::*;
use crate::tcp::tests::harness::{Harness, MSS, peer, sack};
use crate::wire::tcp::Flags;

#[test]
fn fields_by_linux_names() {
    let mut h = Harness::new();
    let (id, iss) = h.established_after(Duration::from_millis(20));
    let now = h.now;
    h.tcp.set_options(id, now, |options| options.nodelay = true);
    for _ in 0..3 {
        h.write(id, &[1; 100]);
    }
    h.write(id, &[1; 2 * MSS as usize]);
    h.pass(Duration::from_millis(7));
    h.input_with(Flags::ACK, peer(0), iss + 101, &[], |header| {
        let _ = header.options.sack.push(sack(iss, 200, 300));
    });
    let info = h.info(id);
    let field = |name: &str| info.field(name).expect(name);
    assert_eq!(field("tcpi_state"), 1);
    assert_eq!(field("ca_state"), CaState::Disorder as u64);
    assert_eq!(field("tcpi_unacked"), 4, "two small ones and two full ones");
    assert_eq!(field("tcpi_sacked"), 1);
    assert_eq!(field("tcpi_lost"), 0);
    assert_eq!(field("tcpi_snd_cwnd"), 10);
    assert_eq!(field("tcpi_snd_ssthresh"), 0x7fff_ffff);
    assert_eq!(field("tcpi_snd_mss"), u64::from(MSS));
    assert_eq!(field("tcpi_options"), 2);
    assert_eq!(field("tcpi_pmtu"), 1500);
    assert_eq!(field("tcpi_last_data_sent"), 7);
    assert_eq!(field("tcpi_last_ack_recv"), 0);
    assert_eq!(field("tcpi_bytes_acked"), 100);
    assert_eq!(field("tcpi_data_segs_out"), 5);
    assert_eq!(field("tcpi_busy_time"), 7000);
    assert_eq!(info.field("tcpi_no_such_thing"), None);
}
