//! The table of bulk throughput is as committed in `tables/bulk.txt`.
//!
//! When a change of the stack moves a cell by more than [`TOLERANCE`], write the table anew and
//! look at its diff:
//!
//! ```sh
//! cargo run -p paceline-stack --example seeds --features sim --release -- \
//!     --only bulk --tables stack/tests/tables
//! ```

use paceline_stack::sim::figures::bulk::{COLUMNS, Cell};

const TABLE: &str = include_str!("tables/bulk.txt");

/// How far a cell's share of what is allowed may be from the committed one, in thousandths.
const TOLERANCE: u64 = 50;

/// The committed share of a cell, in thousandths.
fn committed(cell: &Cell) -> u64 {
    let name = cell.name();
    let row = TABLE.lines().skip(1).find_map(|line| {
        let cells: Vec<&str> = line.split("  ").map(str::trim).collect();
        let cells: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
        let is_it = cells.iter().zip(&name).all(|(cell, name)| cell == name);
        (is_it && cells.len() == COLUMNS.len()).then_some(cells)
    });
    let row = row.unwrap_or_else(|| panic!("no row for {name:?}"));
    let share = COLUMNS.iter().position(|column| *column == "share");
    let share = row[share.expect("a column of shares")].replace('.', "");
    share.parse().expect("a number with three decimals")
}

/// All cells in an optimized build, those that are quick in others.
#[test]
fn cells_are_as_committed() {
    let mut moved = Vec::new();
    for cell in Cell::all(false) {
        let committed = committed(&cell);
        if cfg!(debug_assertions) && !cell.is_quick() {
            continue;
        }
        let share = cell.measure().bps * 1000 / cell.allowed().0;
        if share.abs_diff(committed) > TOLERANCE {
            moved.push(format!(
                "{:?}: committed {committed}, got {share}",
                cell.name()
            ));
        }
    }
    assert!(moved.is_empty(), "{moved:#?}");
}
