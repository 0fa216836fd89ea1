use super::*;

const COST: CpuTimes = CpuTimes {
    dom0_s: 2.0,
    guest_s: 4.0,
};

/// A slice of a second.
fn slice(mbit_per_s: f64) -> Slice {
    let flow = Flow {
        bytes: (mbit_per_s * 1e6 / 8.0) as u64,
        seconds: 1.0,
        mbit_per_s,
        retransmits: Some(3),
    };
    Slice::new(0, &flow, 500_000_000, COST)
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
            reading_cpu_s: 0.0,
            rows: vec![Row::new("dom0 → guest".to_owned(), vec![slice(*rate)])],
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
        clock: Clock::Instructions,
        time_s: 6,
        dom0_ready_s: 8.0,
        boots,
        ratios: Vec::new(),
    }
}

#[test]
fn cpu_time_is_per_billion_bytes() {
    let row = |slice| Row::new("x".to_owned(), vec![slice]);
    let moved = row(slice(100.0));
    assert_eq!(
        (moved.dom0_cpu_s_per_gb, moved.guest_cpu_s_per_gb),
        (Some(4.0), Some(8.0))
    );
    let silent = row(Slice {
        run_bytes: 0,
        ..slice(0.0)
    });
    assert_eq!(
        (silent.dom0_cpu_s_per_gb, silent.guest_cpu_s_per_gb),
        (None, None)
    );
}

#[test]
fn a_row_is_the_total_of_its_slices() {
    let long = Slice {
        bytes: 150_000_000,
        seconds: 3.0,
        mbit_per_s: 400.0,
        run_bytes: 1_500_000_000,
        ..slice(400.0)
    };
    // 12.5 MB in 1 s and 150 MB in 3 s.
    let row = Row::new("x".to_owned(), vec![slice(100.0), long]);
    assert!((row.mbit_per_s - 325.0).abs() < 1e-9);
    assert_eq!(row.retransmits, Some(6));
    assert_eq!(
        (row.dom0_cpu_s_per_gb, row.guest_cpu_s_per_gb),
        (Some(2.0), Some(4.0))
    );
    assert_eq!(row.slices.len(), 2);
}

#[test]
fn retransmits_unknown_in_one_slice_are_unknown() {
    let unknown = Slice {
        retransmits: None,
        ..slice(100.0)
    };
    let row = Row::new("x".to_owned(), vec![slice(100.0), unknown]);
    assert_eq!(row.retransmits, None);
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
    assert_eq!(json["clock"], "instructions");
    let row = &json["boots"][0]["rows"][0];
    assert_eq!(row["retransmits"], 3);
    assert_eq!(row["slices"][0]["mbit_per_s"], 1.0);
}

#[test]
fn reading_costs_nobody_time() {
    let near = |left: f64, right: f64| (left - right).abs() < 1e-9;
    let slice = slice(100.0);
    assert!(near(slice.without_reading(0.25).dom0_cpu_s, 1.75));
    assert!(near(slice.without_reading(0.25).guest_cpu_s, 4.0));
    // Tenths may round the other way.
    assert!(near(slice.without_reading(2.1).dom0_cpu_s, 0.0));
}
