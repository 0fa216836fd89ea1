use super::*;

fn flow() -> Flow {
    Flow {
        bytes: 500_000_000,
        mbit_per_s: 100.0,
        retransmits: Some(0),
    }
}

fn results(rates: &[(Kind, f64)]) -> Results {
    let boots = rates
        .iter()
        .map(|(guest, rate)| GuestRun {
            guest: *guest,
            round: 1,
            memory_mib: 64,
            boot: BootTimes {
                create_s: 1.0,
                first_ping_s: 0.5,
            },
            rows: vec![Row::new(
                "dom0 → guest".to_owned(),
                &Flow {
                    mbit_per_s: *rate,
                    ..flow()
                },
                500_000_000,
                2.0,
                4.0,
            )],
        })
        .collect();
    Results {
        schema: SCHEMA,
        versions: Versions {
            qemu: "7.2".to_owned(),
            xen: "4.17".to_owned(),
            dom0_kernel: "6.1".to_owned(),
            iperf3: "3.12".to_owned(),
        },
        paceline: None,
        paceline_image_bytes: None,
        accel: "tcg",
        time_s: 6,
        dom0_ready_s: 8.0,
        boots,
    }
}

#[test]
fn cpu_time_is_per_billion_bytes() {
    let row = Row::new("x".to_owned(), &flow(), 500_000_000, 2.0, 4.0);
    assert_eq!(
        (row.dom0_cpu_s_per_gb, row.guest_cpu_s_per_gb),
        (Some(4.0), Some(8.0))
    );
    let row = Row::new("x".to_owned(), &flow(), 0, 2.0, 4.0);
    assert_eq!(
        (row.dom0_cpu_s_per_gb, row.guest_cpu_s_per_gb),
        (None, None)
    );
}

#[test]
fn medians_are_per_guest_and_test() {
    let results = results(&[
        (Kind::Linux, 100.0),
        (Kind::Paceline, 500.0),
        (Kind::Linux, 300.0),
        (Kind::Linux, 110.0),
        (Kind::Paceline, 300.0),
    ]);
    let median = |guest| results.median_mbit_per_s(guest, "dom0 → guest");
    assert_eq!(median(Kind::Linux), Some(110.0));
    assert_eq!(median(Kind::Paceline), Some(400.0));
    assert_eq!(results.median_mbit_per_s(Kind::Linux, "another"), None);
}

#[test]
fn the_document_names_guests_in_lower_case() {
    let json = serde_json::to_value(results(&[(Kind::Paceline, 1.0)])).unwrap();
    assert_eq!(json["boots"][0]["guest"], "paceline");
    assert_eq!(json["schema"], SCHEMA);
    assert_eq!(json["boots"][0]["rows"][0]["retransmits"], 0);
}
