//! What connections have in the device, and what waits for it.

use super::{
    harness::{Harness, MSS},
    *,
};
use crate::{
    sim::{CompletionTime, Cost, Fate, apps},
    tcp::{Rate, TsqPolicy},
};

const US: fn(u64) -> Duration = Duration::from_micros;
/// What the sender's processor can do.
const CPU_BPS: u64 = 8_000_000_000;
/// Payload of a full packet, and how many netfront's ring holds.
const PACKET_BYTES: u64 = 65_160;
const RING_PACKETS: u64 = 13;

/// Two guests of one machine, the first with a NIC that answers at `completion`.
fn guests(completion: CompletionTime) -> (Network, Host, Host) {
    let nic = NicConfig {
        completion,
        cpu: Cost::for_rate(CPU_BPS),
        ..NicConfig::default()
    };
    let link = Link {
        delay: US(10),
        whole_segments: true,
        ..Link::default()
    };
    let mut network = Network::new();
    network.audit();
    let sender = network.add_host(nic, 1, link);
    let receiver = network.add_host(NicConfig::default(), 2, link);
    (network, sender, receiver)
}

fn bulk(network: &mut Network, sender: &Host, receiver: &Host, policy: TsqPolicy) -> apps::Meter {
    let port = PORT + network.tasks() as u16;
    let meter = apps::sink(network, receiver, port, |_| {});
    apps::bulk(network, sender, (receiver, port), move |options| {
        options.tsq_policy = policy;
        options.limit_output_bytes = 4 << 20;
    });
    meter
}

/// Bits a second that `meter` counts within `span`.
fn measure(network: &mut Network, meter: &apps::Meter, span: Duration) -> u64 {
    let before = meter.bytes();
    network.run_for(span);
    (meter.bytes() - before) * 8_000_000 / span.as_micros() as u64
}

/// Whatever the device does, no flow waits for ever, and the limit is wide enough.
#[test]
fn completions_of_all_kinds() {
    let ring_bps = |us: u64| RING_PACKETS * PACKET_BYTES * 8_000_000 / us;
    for (completion, least_bps) in [
        (CompletionTime::AfterSent(US(0)), CPU_BPS),
        (CompletionTime::Uniform(US(100), US(500)), CPU_BPS),
        (
            CompletionTime::Batched {
                after: US(50),
                every: US(500),
            },
            CPU_BPS,
        ),
        (
            CompletionTime::Batched {
                after: US(50),
                every: US(2000),
            },
            ring_bps(2000),
        ),
        (
            CompletionTime::Mixed {
                usual: US(200),
                rare: US(1000),
                rare_ppm: 1000,
            },
            CPU_BPS,
        ),
    ] {
        let (mut network, a, b) = guests(completion);
        let meter = bulk(&mut network, &a, &b, TsqPolicy::Measured);
        network.run_for(Duration::from_millis(500));
        let bps = measure(&mut network, &meter, Duration::from_millis(500));
        assert!(bps >= least_bps / 100 * 93, "{completion:?}: {bps}");
    }
}

/// A flow that left slow start with a small window grows it, though its limit in the device, which
/// is made of the window, stops it first.
#[test]
fn a_throttled_flow_grows_its_window_after_a_loss() {
    for policy in [TsqPolicy::Paced, TsqPolicy::Measured] {
        let (mut network, a, b) = guests(CompletionTime::Fixed(US(900)));
        let mut large = 0;
        network.hook(&a, move |_, frame| {
            large += u32::from(frame.bytes.len() > 1000);
            if large == 4 {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        let port = PORT;
        let meter = apps::sink(&mut network, &b, port, |_| {});
        apps::bulk(&mut network, &a, (&b, port), move |options| {
            options.tsq_policy = policy;
            options.limit_output_bytes = 64 << 10;
            if policy == TsqPolicy::Measured {
                options.limit_output_bytes = 4 << 20;
            }
        });
        network.run_for(Duration::from_secs(2));
        assert!(infos(&a)[0].total_retrans > 0);
        let bps = measure(&mut network, &meter, Duration::from_secs(1));
        let ring_bps = RING_PACKETS * PACKET_BYTES * 8_000_000 / 900;
        assert!(bps >= ring_bps / 100 * 90, "{policy:?}: {bps}");
    }
}

/// Where the ring is too small for all, a flow that comes later gets as much of it as the one
/// that has filled it.
#[test]
fn flows_share_a_ring_that_is_too_small() {
    let (mut network, a, b) = guests(CompletionTime::Fixed(US(4000)));
    let first = bulk(&mut network, &a, &b, TsqPolicy::Measured);
    network.run_for(Duration::from_millis(500));
    let second = bulk(&mut network, &a, &b, TsqPolicy::Measured);
    network.run_for(Duration::from_millis(500));
    let before = (first.bytes(), second.bytes());
    network.run_for(Duration::from_secs(1));
    let (first, second) = (first.bytes() - before.0, second.bytes() - before.1);
    let ring = RING_PACKETS * PACKET_BYTES * 1_000_000 / 4000;
    assert!(first + second >= ring / 100 * 90, "{first} and {second}");
    let jain_percent = (first + second).pow(2) / ((first.pow(2) + second.pow(2)) / 50);
    assert!(jain_percent >= 98, "{first} and {second}");
}

/// Small writes are answered though the device is done with nothing.
#[test]
fn small_writes_do_not_wait_for_completions() {
    let (mut network, a, b) = guests(CompletionTime::Fixed(US(50)));
    let listener = TcpListener::bind_with(&b.net, server_addr(), 1, |options| {
        options.nodelay = true;
    })
    .unwrap();
    network.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 100];
        while stream.read_exact(&mut buffer).await.is_ok() {
            stream.write_all(&buffer).await.unwrap();
        }
    });
    let (answers, count) = shared(0);
    let net = a.net.clone();
    network.spawn(async move {
        let nodelay = |options: &mut super::super::Options| options.nodelay = true;
        let mut stream = TcpStream::connect_with(&net, None, server_addr(), nodelay)
            .await
            .unwrap();
        let mut buffer = [0; 100];
        loop {
            stream.write_all(&buffer).await.unwrap();
            stream.read_exact(&mut buffer).await.unwrap();
            count.set(count.get() + 1);
        }
    });
    network.run_for(Duration::from_millis(10));
    let until = network.now() + Duration::from_millis(150);
    a.nic.stall(until);
    let before = answers.get();
    network.run_for(Duration::from_millis(5));
    assert!(answers.get() >= before + 60, "{}", answers.get() - before);
    assert!(infos(&a)[0].in_device_bytes >= 6000);
    // In the end the ring is full: that holds up, and loses nothing.
    network.run_for(Duration::from_millis(345));
    assert!(answers.get() >= before + 1000);
    assert_eq!(infos(&a)[0].total_retrans, 0);
}

#[test]
fn a_retransmission_goes_though_the_original_is_in_the_device() {
    let mut h = Harness::new();
    h.keeps = true;
    let (id, iss) = h.established();
    h.write(id, &[1; 3000]);
    assert_eq!(h.one().payload.len(), 3000);
    h.pass(Duration::from_secs(2));
    let again = h.sent();
    // A loss probe, and the first segment after the timeout.
    let first = iss.wrapping_add(1);
    assert!(again.iter().any(|out| out.header.seq == first), "{again:?}");
    assert!(h.info(id).in_device_bytes > 3000, "both are counted");
}

#[test]
fn a_full_share_holds_new_data_until_a_completion() {
    let mut h = Harness::new();
    h.keeps = true;
    let (id, iss) = h.established_with(|header| header.options.window_scale = Some(7));
    let mut acked = 0;
    let mut held = Vec::new();
    for _ in 0..20 {
        h.write(id, &vec![1; 256 << 10]);
        let sent = h.sent();
        acked += sent.iter().map(|out| out.payload.len() as u32).sum::<u32>();
        held.extend(sent);
        h.input(
            crate::wire::tcp::Flags::ACK,
            super::harness::peer(0),
            iss.wrapping_add(1 + acked),
            &[],
        );
    }
    let info = h.info(id);
    assert!(info.in_device_bytes <= info.device_limit_bytes);
    assert!(info.in_device_bytes + 45 * MSS > info.device_limit_bytes);
    assert!(info.notsent_bytes > 0, "more waits");
    assert_eq!(
        info.unacked_bytes, 0,
        "and everything has been acknowledged"
    );
    // That is no reason to probe the peer's window.
    h.pass(Duration::from_secs(5));
    h.silent();
    for out in held {
        h.complete(&out);
    }
    h.poll();
    assert!(!h.sent().is_empty());
}

/// The most that left within a millisecond, on a path of 50 ms.
fn largest_burst(pacing: bool) -> usize {
    let link = Link {
        delay: Duration::from_millis(25),
        ..Link::default()
    };
    let (mut network, a, b) = Network::pair(NicConfig::default(), link);
    apps::sink(&mut network, &b, PORT, |options| {
        options.rcvbuf_bytes = Some(4 << 20);
    });
    apps::bulk(&mut network, &a, (&b, PORT), move |options| {
        options.sndbuf_bytes = Some(4 << 20);
        options.pacing = pacing;
    });
    network.run_for(Duration::from_millis(300));
    network.record();
    network.run_for(Duration::from_millis(200));
    let mut bursts = std::collections::BTreeMap::<u64, usize>::new();
    for record in network.take_records() {
        if record.from == a.id {
            *bursts.entry(record.at.as_micros() / 1000).or_default() += record.frame.bytes.len();
        }
    }
    bursts.into_values().max().unwrap_or(0)
}

#[test]
fn pacing_spreads_the_window() {
    let (paced, unpaced) = (largest_burst(true), largest_burst(false));
    assert!(paced > 0 && paced * 2 < unpaced, "{paced} and {unpaced}");
}

#[test]
fn a_pacing_rate_asked_for_is_kept() {
    for (delay_us, asked) in [(50, 10_000_000), (5000, 10_000_000), (50, 200_000_000)] {
        let link = Link {
            delay: US(delay_us),
            ..Link::default()
        };
        let (mut network, a, b) = Network::pair(NicConfig::default(), link);
        network.audit();
        let meter = apps::sink(&mut network, &b, PORT, |_| {});
        apps::bulk(&mut network, &a, (&b, PORT), move |options| {
            options.max_pacing_rate = Rate::from_bytes_per_second(asked);
            options.pacing = false;
        });
        network.run_for(Duration::from_millis(500));
        let bytes = measure(&mut network, &meter, Duration::from_secs(1)) / 8;
        assert!(
            bytes >= asked / 100 * 97 && bytes <= asked / 100 * 102,
            "{asked} at {delay_us} us: {bytes}"
        );
        assert_eq!(infos(&a)[0].max_pacing_rate, asked);
    }
}
