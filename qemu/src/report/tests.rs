use super::*;
use crate::{domain::BootTimes, iperf::Flow, xen_rig::Versions};

fn run(guest: Kind, rate: f64) -> GuestRun {
    let flow = Flow {
        bytes: 1_000_000_000,
        mbit_per_s: rate,
        retransmits: None,
    };
    GuestRun {
        guest,
        round: 1,
        memory_mib: 64,
        boot: BootTimes {
            create_s: 1.25,
            first_ping_s: 0.5,
        },
        rows: vec![Row::new(
            "dom0 → guest".to_owned(),
            &flow,
            flow.bytes,
            2.0,
            3.0,
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
        time_s: 6,
        dom0_ready_s: 8.04,
        boots,
    }
}

#[test]
fn a_run_of_one_guest_has_no_ratios() {
    let expected = "\
QEMU 7.2.22 (tcg), Xen 4.17.7, dom0 Linux 6.1.0, iperf3 3.12
Paceline 0.1.0 (abc), image 293 KiB
dom0 ready after 8.0 s

paceline: 64 MiB, xl create 1.25 s, first ping 0.50 s later
                Mbit/s  retransmits  dom0 s/GB  guest s/GB
  dom0 → guest     600            -        2.0         3.0
";
    assert_eq!(render(&results(vec![run(Kind::Paceline, 600.0)])), expected);
}

#[test]
fn ratios_compare_the_two_guests() {
    let text = render(&results(vec![
        run(Kind::Linux, 300.0),
        run(Kind::Paceline, 600.0),
    ]));
    let expected = "\
paceline / linux, medians of Mbit/s
                paceline  linux  ratio
  dom0 → guest       600    300   2.00
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn rounds_are_numbered_when_there_are_several() {
    let text = render(&results(vec![run(Kind::Linux, 1.0), run(Kind::Linux, 2.0)]));
    assert_eq!(text.matches("linux, round 1: 64 MiB").count(), 2, "{text}");
}
