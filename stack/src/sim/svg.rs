//! Line plots as SVG: panels with one x axis, for people who would rather look.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};
use core::fmt::Write;

const WIDTH: u64 = 960;
const LEFT: u64 = 84;
const RIGHT: u64 = 20;
const TOP: u64 = 40;
const PANEL_HEIGHT: u64 = 170;
const PANEL_GAP: u64 = 30;
const BOTTOM: u64 = 44;
/// Colours that people with colour blindness can tell apart (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];

/// A plot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// Above it all.
    pub title: String,
    /// The axis that all panels share.
    pub x: Axis,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What it shows, with the unit of its numbers.
    pub label: String,
    /// Values that make one unit of the label: 1000 for microseconds under "ms".
    pub unit: u64,
    /// Whether equal ratios have equal lengths; zero is then where one is.
    pub log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn new(label: impl Into<String>, unit: u64) -> Self {
        Self {
            label: label.into(),
            unit: unit.max(1),
            log: false,
        }
    }

    /// The same with equal lengths for equal ratios.
    #[must_use]
    pub fn log(mut self) -> Self {
        self.log = true;
        self
    }

    /// Where `value` lies on an axis from `range.0` to `range.1` of `length` pixels.
    fn place(&self, value: u64, range: (u64, u64), length: u64) -> u64 {
        let place = |value: u64| if self.log { log2(value) } else { value };
        let (low, high) = (place(range.0), place(range.1));
        let offset = place(value).clamp(low, high.max(low)) - low;
        let span = u128::from((high.saturating_sub(low)).max(1));
        ((u128::from(offset) * u128::from(length) + span / 2) / span) as u64
    }

    /// Values to label between the two.
    fn ticks(&self, (low, high): (u64, u64), most: u64) -> Vec<u64> {
        if self.log {
            let narrow = high / low.max(1) < 100;
            let parts: &[u64] = if narrow { &[1, 2, 5] } else { &[1] };
            let decades = (0..19).map(|exponent| 10_u64.pow(exponent));
            return decades
                .flat_map(|decade| parts.iter().map(move |part| part.saturating_mul(decade)))
                .filter(|tick| (low.max(1)..=high).contains(tick))
                .collect();
        }
        let span = high.saturating_sub(low).max(1);
        let mut step = 1_u64;
        while span / step > most {
            let leading = step / 10_u64.pow(step.ilog10());
            step = if leading == 2 {
                step / 2 * 5
            } else {
                step.saturating_mul(2)
            };
        }
        let first = low.div_ceil(step);
        (first..=high / step).map(|count| count * step).collect()
    }

    /// `value` in units of the label.
    fn show(&self, value: u64) -> String {
        let whole = value / self.unit;
        let rest = u128::from(value % self.unit);
        let thousandths = rest * 1000 / u128::from(self.unit);
        if thousandths == 0 {
            return whole.to_string();
        }
        let digits = format!("{thousandths:03}");
        format!("{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// A panel: lines over the common x axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// Its own axis.
    pub y: Axis,
    /// Its lines.
    pub series: Vec<Series>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// From point to point.
    #[default]
    Line,
    /// From point to point, with a mark at each.
    Marked,
    /// Each value holds until the next.
    Steps,
    /// Dashed: what to compare with.
    Reference,
}

/// A series of points, in the order of x.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// For the legend.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// The points.
    pub points: Vec<(u64, u64)>,
}

impl Series {
    /// A series.
    pub fn new(name: impl Into<String>, style: Style, points: Vec<(u64, u64)>) -> Self {
        Self {
            name: name.into(),
            style,
            points,
        }
    }
}

impl Chart {
    /// The plot as an SVG file.
    pub fn svg(&self) -> String {
        let count = self.panels.len() as u64;
        let height = TOP + count * (PANEL_HEIGHT + PANEL_GAP) - PANEL_GAP.min(count * PANEL_GAP);
        let height = height + BOTTOM;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
        );
        text(&mut out, (LEFT, 22), "", "font-size=\"15\"", &self.title);
        let points = || {
            let all = self.panels.iter().flat_map(|panel| &panel.series);
            all.flat_map(|series| &series.points).map(|&(x, _)| x)
        };
        let low = if self.x.log { points().min() } else { Some(0) };
        let range = (low.unwrap_or(0), points().max().unwrap_or(1).max(1));
        for (panel, index) in self.panels.iter().zip(0..) {
            let top = TOP + index * (PANEL_HEIGHT + PANEL_GAP);
            self.panel(&mut out, panel, top, range);
        }
        let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2;
        let place = (middle, height - 10);
        text(&mut out, place, "middle", "", &self.x.label);
        out.push_str("</svg>\n");
        out
    }

    fn panel(&self, out: &mut String, panel: &Panel, top: u64, range: (u64, u64)) {
        let width = WIDTH - LEFT - RIGHT;
        let bottom = top + PANEL_HEIGHT;
        let values = || {
            let points = panel.series.iter().flat_map(|series| &series.points);
            points.map(|&(_, y)| y)
        };
        let least = if panel.y.log { values().min() } else { Some(0) };
        let most = values().max().unwrap_or(1).max(1);
        // Room for the legend above the lines.
        let most = if panel.y.log {
            most.saturating_mul(2)
        } else {
            most.saturating_add(most / 5)
        };
        let y_range = (least.unwrap_or(0), most);
        for tick in panel.y.ticks(y_range, 5) {
            let y = bottom - panel.y.place(tick, y_range, PANEL_HEIGHT);
            line(out, (LEFT, y), (LEFT + width, y));
            let label = panel.y.show(tick);
            text(out, (LEFT - 6, y + 4), "end", "", &label);
        }
        for tick in self.x.ticks(range, 10) {
            let x = LEFT + self.x.place(tick, range, width);
            line(out, (x, top), (x, bottom));
            text(out, (x, bottom + 15), "middle", "", &self.x.show(tick));
        }
        let _ = writeln!(
            out,
            "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{PANEL_HEIGHT}\" \
             fill=\"none\" stroke=\"#888\"/>"
        );
        let turned = format!("transform=\"rotate(-90 16 {})\"", top + PANEL_HEIGHT / 2);
        let place = (16, top + PANEL_HEIGHT / 2);
        text(out, place, "middle", &turned, &panel.y.label);
        let mut legend_x = LEFT + 10;
        for (series, index) in panel.series.iter().zip(0..) {
            let colour = COLOURS[index % COLOURS.len()];
            let place = |&(x, y): &(u64, u64)| {
                (
                    LEFT + self.x.place(x, range, width),
                    bottom - panel.y.place(y, y_range, PANEL_HEIGHT),
                )
            };
            let places: Vec<_> = series.points.iter().map(place).collect();
            draw(out, &thin(&places), series.style, colour);
            let _ = writeln!(
                out,
                "<path d=\"M{legend_x} {}h16\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                top + 12
            );
            text(out, (legend_x + 20, top + 16), "", "", &series.name);
            legend_x += 7 * series.name.chars().count() as u64 + 40;
        }
    }
}

/// At most four points for each pixel of width, so that a long trace makes a small file: the
/// first, the extremes in their order, and the last.
fn thin(points: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for column in points.chunk_by(|a, b| a.0 == b.0) {
        let extreme = |wanted: Option<u64>| column.iter().position(|&(_, y)| Some(y) == wanted);
        let ys = || column.iter().map(|&(_, y)| y);
        let mut kept = vec![0, column.len() - 1];
        kept.extend(extreme(ys().min()));
        kept.extend(extreme(ys().max()));
        kept.sort_unstable();
        kept.dedup();
        out.extend(kept.into_iter().map(|index| column[index]));
    }
    out.dedup();
    out
}

fn draw(out: &mut String, points: &[(u64, u64)], style: Style, colour: &str) {
    if points.is_empty() {
        return;
    }
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let _ = match (index, style) {
            (0, _) => write!(path, "M{x} {y}"),
            (_, Style::Steps) => write!(path, "H{x}V{y}"),
            _ => write!(path, "L{x} {y}"),
        };
    }
    let dashes = match style {
        Style::Reference => " stroke-dasharray=\"6 4\"",
        _ => "",
    };
    let _ = writeln!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"{dashes}/>"
    );
    if style == Style::Marked {
        for (x, y) in points {
            let _ = writeln!(
                out,
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{colour}\"/>"
            );
        }
    }
}

fn line(out: &mut String, (x1, y1): (u64, u64), (x2, y2): (u64, u64)) {
    let _ = writeln!(out, "<path d=\"M{x1} {y1}L{x2} {y2}\" stroke=\"#ddd\"/>");
}

fn text(out: &mut String, (x, y): (u64, u64), anchor: &str, more: &str, words: &str) {
    let anchor = match anchor {
        "" => String::new(),
        anchor => format!(" text-anchor=\"{anchor}\""),
    };
    let words = words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\"{anchor} {more}>{words}</text>"
    );
}

/// 1024 times the binary logarithm; that of zero is zero.
fn log2(value: u64) -> u64 {
    let value = u128::from(value.max(1));
    let whole = value.ilog2();
    // Fixed point with 32 bits: squaring doubles the logarithm and brings out its next bit.
    let mut mantissa = (value << 32) >> whole;
    let mut result = u64::from(whole);
    for _ in 0..10 {
        mantissa = (mantissa * mantissa) >> 32;
        result *= 2;
        if mantissa >= 2 << 32 {
            mantissa >>= 1;
            result += 1;
        }
    }
    result
}

#[cfg(test)]
mod tests;
