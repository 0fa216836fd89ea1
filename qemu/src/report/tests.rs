use super::*;
use crate::{
    clock::Clock,
    domain::{BootTimes, CpuTimes},
    iperf::Flow,
    ratio,
    results::Slice,
    xen_rig::Versions,
};

/// A guest with one slice of a second for each of `rates`, a billion bytes each.
fn run(guest: Kind, round: u32, rates: &[f64]) -> GuestRun {
    let cost = CpuTimes {
        dom0_s: 2.0,
        guest_s: 3.0,
    };
    let slice = |rate: &f64| {
        let flow = Flow {
            bytes: (rate * 1e6 / 8.0) as u64,
            seconds: 1.0,
            mbit_per_s: *rate,
            retransmits: None,
        };
        Slice::new(0, &flow, 1_000_000_000, cost)
    };
    GuestRun {
        guest,
        round,
        memory_mib: 64,
        boot: BootTimes {
            create_s: 1.25,
            first_ping_s: 0.5,
        },
        reading_cpu_s: 0.0,
        rows: vec![Row::new(
            "dom0 → guest".to_owned(),
            rates.iter().map(slice).collect(),
        )],
    }
}

fn results(boots: Vec<GuestRun>) -> Results {
    Results {
        schema: crate::results::SCHEMA,
        versions: Versions {
            qemu: "7.2.22".to_owned(),
            xen: "4.17.7".to_owned(),
            dom0_kernel: "6.1.0".to_owned(),
            iperf3: "3.12".to_owned(),
        },
        paceline: Some("0.1.0 (abc)".to_owned()),
        paceline_image_bytes: Some(300_000),
        accel: "tcg",
        clock: Clock::Host,
        time_s: 6,
        dom0_ready_s: 8.04,
        ratios: ratio::ratios(&boots),
        boots,
    }
}

#[test]
fn a_run_of_one_guest_has_no_ratios() {
    let expected = "\
QEMU 7.2.22 (tcg), Xen 4.17.7, dom0 Linux 6.1.0, iperf3 3.12
Paceline 0.1.0 (abc), image 293 KiB
dom0 ready after 8.0 s of the host

paceline: 64 MiB, xl create 1.25 s, first ping 0.50 s later
                Mbit/s  retransmits  dom0 s/GB  guest s/GB
  dom0 → guest     600            -        2.0         3.0
";
    assert_eq!(
        render(&results(vec![run(Kind::Paceline, 1, &[600.0])])),
        expected
    );
}

#[test]
fn another_clock_is_explained() {
    let results = Results {
        clock: Clock::Instructions,
        ..results(vec![run(Kind::Paceline, 1, &[600.0])])
    };
    let text = render(&results);
    let expected = "\nclock: instructions, 1 ns each; both processors share it, so a figure is the \
                    work of dom0 and guest together\ndom0 ready";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn ratios_compare_slices_side_by_side() {
    // The machine slows down: the rates say 1.5, each pair 2.
    let text = render(&results(vec![
        run(Kind::Linux, 1, &[300.0, 300.0, 150.0]),
        run(Kind::Paceline, 1, &[600.0, 225.0, 300.0]),
    ]));
    let expected = "
paceline / linux: Mbit/s; median ratio of slices run side by side
                paceline  linux  ratio
  dom0 → guest       375    250   2.00
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn several_rounds_are_numbered_and_give_a_spread() {
    let text = render(&results(vec![
        run(Kind::Linux, 1, &[300.0, 300.0]),
        run(Kind::Paceline, 1, &[600.0, 600.0]),
        run(Kind::Linux, 2, &[200.0, 200.0]),
        run(Kind::Paceline, 2, &[300.0, 400.0]),
        run(Kind::Linux, 3, &[100.0, 100.0]),
        run(Kind::Paceline, 3, &[300.0, 300.0]),
    ]));
    let expected = "
paceline / linux: medians of 3 rounds' Mbit/s; ratios of slices run side by side,
their median, and the lowest and highest of a round's
                paceline  linux  ratio  lowest  highest
  dom0 → guest       350    200   2.00    1.75     3.00
";
    assert!(text.ends_with(expected), "{text}");
    for round in 1..=3 {
        for guest in ["linux", "paceline"] {
            assert!(
                text.contains(&format!("\n{guest}, round {round}: 64 MiB")),
                "{text}"
            );
        }
    }
}
