//! What the emulated machine takes for time.

use serde::Serialize;

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Clock {
    /// The host's: figures are what the emulator reaches beside the host's other work.
    #[default]
    Host,
    /// The count of instructions executed: figures do not depend on the host.
    Instructions,
}

impl Clock {
    /// The accelerator and further arguments that give TCG this clock.
    pub(crate) fn tcg_args(self) -> &'static [&'static str] {
        match self {
            Self::Host => &["-accel", "tcg,thread=multi"],
            // An idle machine's clock jumps to the next timer. Counting needs the processors to
            // take turns on one thread.
            Self::Instructions => &[
                "-accel",
                "tcg,thread=single",
                "-icount",
                "shift=0,sleep=off",
            ],
        }
    }

    /// How many seconds of the host the rig allows a second of the machine.
    pub(crate) fn patience(self) -> u32 {
        match self {
            Self::Host => 1,
            // A slice of a second and what belongs to it take twelve on a host that is not busy.
            Self::Instructions => 20,
        }
    }

    /// Seconds of each row when the user does not say: what keeps a run to a few minutes.
    pub(crate) fn default_time_s(self) -> u32 {
        match self {
            Self::Host => 6,
            Self::Instructions => 2,
        }
    }

    /// What a reader of figures must know of the clock.
    pub(crate) fn note(self) -> Option<&'static str> {
        match self {
            Self::Host => None,
            Self::Instructions => Some(
                "clock: instructions, 1 ns each; both processors share it, so a figure is the work \
                 of dom0 and guest together",
            ),
        }
    }
}
