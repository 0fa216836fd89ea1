//! The results of a run, as they are written to `results.json`.

use serde::Serialize;

use crate::{
    clock::Clock,
    domain::{BootTimes, CpuTimes, Kind},
    iperf::Flow,
    ratio::{self, Ratio},
    xen_rig::Versions,
};

/// Bumped when a field changes its meaning.
pub(crate) const SCHEMA: u32 = 2;

/// A whole run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Results {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// Versions of what took part.
    pub(crate) versions: Versions,
    /// Paceline's version, when it took part.
    pub(crate) paceline: Option<String>,
    /// Size of Paceline's stripped image.
    pub(crate) paceline_image_bytes: Option<usize>,
    /// `kvm` or `tcg`.
    pub(crate) accel: &'static str,
    /// The machine's time, in which every figure but `dom0_ready_s` is.
    pub(crate) clock: Clock,
    /// Seconds of each row.
    pub(crate) time_s: u32,
    /// Seconds of the host from QEMU's start to dom0's greeting.
    pub(crate) dom0_ready_s: f64,
    /// One entry a boot of a guest, in their order.
    pub(crate) boots: Vec<GuestRun>,
    /// Paceline over Linux, when both took part.
    pub(crate) ratios: Vec<Ratio>,
}

/// One boot of a guest and what was measured on it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct GuestRun {
    /// Which guest.
    pub(crate) guest: Kind,
    /// Counts from one.
    pub(crate) round: u32,
    /// Its memory.
    pub(crate) memory_mib: u32,
    /// How long it took to start.
    pub(crate) boot: BootTimes,
    /// dom0's CPU seconds for reading a slice's CPU times, which the slices' do not contain.
    pub(crate) reading_cpu_s: f64,
    /// The measurements.
    pub(crate) rows: Vec<Row>,
}

/// One line of the table: one direction of a test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    /// What was measured: `dom0 → guest, 4 flows`.
    pub(crate) test: String,
    /// Rate at the receiver over all slices.
    pub(crate) mbit_per_s: f64,
    /// The sender's retransmitted segments, all slices' together.
    pub(crate) retransmits: Option<i64>,
    /// dom0's vCPU seconds per 10⁹ bytes of the test, both directions together.
    pub(crate) dom0_cpu_s_per_gb: Option<f64>,
    /// The guest's.
    pub(crate) guest_cpu_s_per_gb: Option<f64>,
    /// What the row is the total of. With two guests, the nth of one and the nth of the other are
    /// a pair.
    pub(crate) slices: Vec<Slice>,
}

/// One direction of one iperf3 run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Slice {
    /// Its place among the test's slices of this round, those of the other guest counted in.
    pub(crate) turn: usize,
    /// Bytes the receiver got.
    pub(crate) bytes: u64,
    /// Seconds the receiver received.
    pub(crate) seconds: f64,
    /// Rate at the receiver.
    pub(crate) mbit_per_s: f64,
    /// The sender's retransmitted segments, when it knows them.
    pub(crate) retransmits: Option<i64>,
    /// Bytes of the iperf3 run, both directions together.
    pub(crate) run_bytes: u64,
    /// dom0's vCPU seconds for them, without those of the reading.
    pub(crate) dom0_cpu_s: f64,
    /// The guest's.
    pub(crate) guest_cpu_s: f64,
}

impl Slice {
    /// A slice of `flow` in an iperf3 run of `run_bytes` in all that took the given CPU time.
    pub(crate) fn new(turn: usize, flow: &Flow, run_bytes: u64, cpu: CpuTimes) -> Self {
        let &Flow {
            bytes,
            seconds,
            mbit_per_s,
            retransmits,
        } = flow;
        let CpuTimes { dom0_s, guest_s } = cpu;
        Self {
            turn,
            bytes,
            seconds,
            mbit_per_s,
            retransmits,
            run_bytes,
            dom0_cpu_s: dom0_s,
            guest_cpu_s: guest_s,
        }
    }

    /// The slice without what reading its CPU times cost dom0.
    pub(crate) fn without_reading(&self, reading_cpu_s: f64) -> Self {
        Self {
            dom0_cpu_s: (self.dom0_cpu_s - reading_cpu_s).max(0.0),
            ..self.clone()
        }
    }
}

impl Row {
    /// The total of `slices`.
    #[expect(clippy::cast_precision_loss, reason = "no run moves 2^53 bytes")]
    pub(crate) fn new(test: String, slices: Vec<Slice>) -> Self {
        let sum = |of: fn(&Slice) -> f64| slices.iter().map(of).sum::<f64>();
        let bytes: u64 = slices.iter().map(|slice| slice.bytes).sum();
        let run_bytes: u64 = slices.iter().map(|slice| slice.run_bytes).sum();
        let seconds = sum(|slice| slice.seconds);
        let per_gb = |cpu_s: f64| (run_bytes > 0).then(|| cpu_s * 1e9 / run_bytes as f64);
        Self {
            test,
            mbit_per_s: if seconds > 0.0 {
                bytes as f64 * 8.0 / 1e6 / seconds
            } else {
                0.0
            },
            // Unknown when one of them is.
            retransmits: slices.iter().map(|slice| slice.retransmits).sum(),
            dom0_cpu_s_per_gb: per_gb(sum(|slice| slice.dom0_cpu_s)),
            guest_cpu_s_per_gb: per_gb(sum(|slice| slice.guest_cpu_s)),
            slices,
        }
    }
}

impl Results {
    /// The median over the rounds of one guest's rate in one test.
    pub(crate) fn median_mbit_per_s(&self, guest: Kind, test: &str) -> Option<f64> {
        let rates: Vec<f64> = self
            .boots
            .iter()
            .filter(|run| run.guest == guest)
            .flat_map(|run| &run.rows)
            .filter(|row| row.test == test)
            .map(|row| row.mbit_per_s)
            .collect();
        ratio::median(&rates)
    }
}

#[cfg(test)]
mod tests;
