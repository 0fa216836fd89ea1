//! The results of a run, as they are written to `results.json`.

use serde::Serialize;

use crate::{
    domain::{BootTimes, Kind},
    iperf::Flow,
    xen_rig::Versions,
};

/// Bumped when a field changes its meaning.
pub(crate) const SCHEMA: u32 = 1;

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
    /// Seconds of each iperf3 run.
    pub(crate) time_s: u32,
    /// Seconds from QEMU's start to dom0's greeting.
    pub(crate) dom0_ready_s: f64,
    /// One entry a boot of a guest, in their order.
    pub(crate) boots: Vec<GuestRun>,
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
    /// The measurements.
    pub(crate) rows: Vec<Row>,
}

/// One line of the table: one direction of one iperf3 run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    /// What was measured: `dom0 → guest, 4 flows`.
    pub(crate) test: String,
    /// Rate at the receiver.
    pub(crate) mbit_per_s: f64,
    /// The sender's retransmitted segments.
    pub(crate) retransmits: Option<i64>,
    /// dom0's vCPU seconds per 10⁹ bytes of the whole iperf3 run, both directions together.
    pub(crate) dom0_cpu_s_per_gb: Option<f64>,
    /// The guest's.
    pub(crate) guest_cpu_s_per_gb: Option<f64>,
}

impl Row {
    /// A row of `flow` in a run of `run_bytes` in all that took the given CPU time.
    #[expect(clippy::cast_precision_loss, reason = "no run moves 2^53 bytes")]
    pub(crate) fn new(
        test: String,
        flow: &Flow,
        run_bytes: u64,
        dom0_s: f64,
        guest_s: f64,
    ) -> Self {
        let per_gb = |seconds: f64| (run_bytes > 0).then(|| seconds * 1e9 / run_bytes as f64);
        Self {
            test,
            mbit_per_s: flow.mbit_per_s,
            retransmits: flow.retransmits,
            dom0_cpu_s_per_gb: per_gb(dom0_s),
            guest_cpu_s_per_gb: per_gb(guest_s),
        }
    }
}

impl Results {
    /// The median over the rounds of one guest's rate in one test.
    pub(crate) fn median_mbit_per_s(&self, guest: Kind, test: &str) -> Option<f64> {
        let mut rates: Vec<f64> = self
            .boots
            .iter()
            .filter(|run| run.guest == guest)
            .flat_map(|run| &run.rows)
            .filter(|row| row.test == test)
            .map(|row| row.mbit_per_s)
            .collect();
        rates.sort_by(f64::total_cmp);
        let middle = rates.len() / 2;
        match rates.len() {
            0 => None,
            count if count % 2 == 1 => Some(rates[middle]),
            _ => Some(f64::midpoint(rates[middle - 1], rates[middle])),
        }
    }
}

#[cfg(test)]
mod tests;
