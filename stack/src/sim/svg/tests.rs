use super::*;

#[test]
fn logarithms() {
    assert_eq!(log2(0), 0);
    assert_eq!(log2(1), 0);
    assert_eq!(log2(1024), 10 * 1024);
    // 3.321928 * 1024 = 3401.65
    assert_eq!(log2(10), 3401);
    assert_eq!(log2(u64::MAX), 64 * 1024 - 1);
}

#[test]
fn ticks_are_round_and_few() {
    let axis = Axis::new("x", 1000);
    assert_eq!(axis.ticks((0, 100), 5), [0, 20, 40, 60, 80, 100]);
    assert_eq!(axis.ticks((0, 21), 5), [0, 5, 10, 15, 20]);
    assert_eq!(axis.ticks((0, 9), 5), [0, 2, 4, 6, 8]);
    assert_eq!(axis.clone().log().ticks((3, 2000), 5), [10, 100, 1000]);
    assert_eq!(axis.log().ticks((10, 60), 5), [10, 20, 50]);
}

#[test]
fn labels_are_in_units() {
    let axis = Axis::new("ms", 1000);
    assert_eq!(axis.show(0), "0");
    assert_eq!(axis.show(1500), "1.5");
    assert_eq!(axis.show(20_000), "20");
}

#[test]
fn places_span_the_axis() {
    let axis = Axis::new("x", 1);
    assert_eq!(axis.place(0, (0, 10), 500), 0);
    assert_eq!(axis.place(5, (0, 10), 500), 250);
    assert_eq!(axis.place(99, (0, 10), 500), 500);
    let axis = axis.log();
    assert_eq!(axis.place(10, (1, 100), 500), 250);
    assert_eq!(axis.place(0, (1, 100), 500), 0);
}

/// Every coordinate lies within the picture, whatever is drawn.
#[test]
fn everything_is_in_the_picture() {
    let points = (0..10_000_u64)
        .map(|i| (i * i, (i * 7919) % 1013))
        .collect();
    let chart = Chart {
        title: "a < b".to_string(),
        x: Axis::new("s", 1_000_000).log(),
        panels: vec![
            Panel {
                y: Axis::new("y", 1),
                series: vec![Series::new("noise", Style::Steps, points)],
            },
            Panel {
                y: Axis::new("z", 1),
                series: vec![
                    Series::new("empty", Style::Line, vec![]),
                    Series::new("point", Style::Marked, vec![(5, 0)]),
                ],
            },
        ],
    };
    let svg = chart.svg();
    assert!(
        svg.contains("a &lt; b") && svg.len() < 100_000,
        "{}",
        svg.len()
    );
    let height = TOP + 2 * PANEL_HEIGHT + PANEL_GAP + BOTTOM;
    assert!(svg.contains(&format!("height=\"{height}\"")));
    for number in svg.split("d=\"M").skip(1).flat_map(|rest| {
        let path = rest.split('"').next().unwrap();
        path.split(|c: char| !c.is_ascii_digit())
    }) {
        assert!(
            number.parse::<u64>().map_or(true, |n| n <= WIDTH),
            "{number}"
        );
    }
}
