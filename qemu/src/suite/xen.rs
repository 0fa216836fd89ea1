//! Steps under Xen. dom0 boots once; each step takes a guest that runs already when it is the
//! one it wants.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Action, Step};
use crate::{
    agent::Agent,
    cli::{GuestChoice, RigOptions},
    domain::{self, BootTimes, Kind, Spec},
    guest::Image,
    workspace::Workspace,
    xen_rig::{self, XenRig},
};

const GUEST: Kind = Kind::Paceline;
const ADDRESS: &str = GUEST.address();
const TIMEOUT: Duration = Duration::from_mins(1);
const MAX_IMAGE_BYTES: usize = 1 << 20;
const MAX_FIRST_PING_S: f64 = 2.0;
const SMALL_MEMORY_MIB: u32 = 16;
const IPERF_TIME_S: u32 = 2;

pub(super) fn steps() -> Vec<Step> {
    type Work = fn(&mut Bench<'_>) -> Result<()>;
    let works: [(&str, Work); 18] = [
        ("the image is under 1 MiB", small_image),
        (
            "the first ping is answered within 2 s of xl create",
            first_ping,
        ),
        ("1000 pings without loss", pings),
        ("1472-byte pings", full_pings),
        ("fragmented 8000-byte pings", fragmented_pings),
        ("iperf3 dom0 → guest", iperf3_in),
        ("iperf3 guest → dom0", iperf3_out),
        ("iperf3 with 4 flows, both ways", iperf3_parallel),
        ("iperf3 --bidir", iperf3_bidir),
        ("iperf3 after a client with a 1-byte cookie", short_cookie),
        ("xl reboot", reboot),
        ("xl shutdown", shutdown),
        ("poweroff on the console", poweroff),
        ("boot with memory=16", small_memory),
        ("xl destroy in the middle of a run", destroy_while_running),
        ("a bad ip= is refused", bad_ip),
        ("panic gives a report and a crashed domain", panic),
        ("page fault gives a report and a crashed domain", fault),
    ];
    works
        .map(|(what, work)| Step {
            name: format!("xen: {what}"),
            action: Action::Xen(work),
        })
        .into_iter()
        .chain([Step {
            name: "xen: netback found no fault".to_owned(),
            action: Action::Xen(netback_content),
        }])
        .collect()
}

/// Xen, once it is booted, and the guest that runs.
pub(super) struct Bench<'a> {
    workspace: &'a Workspace,
    options: &'a RigOptions,
    image: Image,
    rig: Option<XenRig>,
    running: bool,
}

impl<'a> Bench<'a> {
    pub(super) fn new(workspace: &'a Workspace, options: &'a RigOptions, image: Image) -> Self {
        Self {
            workspace,
            options,
            image,
            rig: None,
            running: false,
        }
    }

    /// Runs a step; after a failure the next one starts from a fresh guest.
    pub(super) fn run(&mut self, work: fn(&mut Bench<'_>) -> Result<()>) -> Result<()> {
        let result = work(self);
        if result.is_err() {
            self.reset();
        }
        result
    }

    fn reset(&mut self) {
        self.running = false;
        if let Some(rig) = &mut self.rig {
            let script = format!("xl destroy {0}; ! xl domid {0}", GUEST.name());
            let clean = rig.dom0.run(&script, TIMEOUT);
            // A dom0 that cannot do that is of no more use: the next step boots another.
            if !clean.is_ok_and(|reply| reply.code == 0) {
                self.rig = None;
            }
        }
    }

    fn dom0(&mut self) -> Result<&mut Agent> {
        match &mut self.rig {
            Some(rig) => Ok(&mut rig.dom0),
            empty => {
                let guests = GuestChoice::Paceline;
                let files =
                    xen_rig::prepare(self.workspace, self.options, guests, Some(&self.image))?;
                let rig = empty.insert(XenRig::boot(self.workspace, self.options, &files)?);
                domain::follow_console(&mut rig.dom0, GUEST)?;
                Ok(&mut rig.dom0)
            }
        }
    }

    fn spec(&self) -> Spec {
        Spec::new(GUEST, self.options.memory_mib, &self.options.cmdline)
    }

    /// dom0 with the usual guest running.
    fn guest(&mut self) -> Result<&mut Agent> {
        if !self.running {
            let spec = self.spec();
            domain::boot(self.dom0()?, &spec)?;
            self.running = true;
        }
        self.dom0()
    }

    /// dom0 without a guest.
    fn no_guest(&mut self) -> Result<&mut Agent> {
        if std::mem::take(&mut self.running) {
            let dom0 = self.dom0()?;
            domain::destroy(dom0, GUEST)?;
            domain::wait_gone(dom0, GUEST)?;
        }
        self.dom0()
    }

    /// Boots another guest than the usual one and leaves it to the step.
    fn boot_afresh(&mut self, spec: &Spec) -> Result<BootTimes> {
        domain::boot(self.no_guest()?, spec)
    }
}

fn small_image(bench: &mut Bench<'_>) -> Result<()> {
    let len = bench.image.bytes.len();
    if len >= MAX_IMAGE_BYTES {
        bail!("expected less than {MAX_IMAGE_BYTES} bytes, the image has {len}");
    }
    Ok(())
}

fn first_ping(bench: &mut Bench<'_>) -> Result<()> {
    // Under TCG the host's other work can steal seconds: one of two boots must be in time.
    let mut best_s = f64::INFINITY;
    for _ in 0..2 {
        let spec = bench.spec();
        let BootTimes {
            create_s: _,
            first_ping_s,
        } = bench.boot_afresh(&spec)?;
        bench.running = true;
        best_s = best_s.min(first_ping_s);
        if best_s < MAX_FIRST_PING_S {
            return Ok(());
        }
    }
    bail!("expected less than {MAX_FIRST_PING_S} s, the faster of two boots took {best_s} s")
}

fn pings(bench: &mut Bench<'_>) -> Result<()> {
    ping(bench, 1_000, "-i 0.01 -s 56")
}

fn full_pings(bench: &mut Bench<'_>) -> Result<()> {
    ping(bench, 100, "-i 0.02 -s 1472 -M do")
}

fn fragmented_pings(bench: &mut Bench<'_>) -> Result<()> {
    ping(bench, 100, "-i 0.02 -s 8000")
}

fn ping(bench: &mut Bench<'_>, count: u32, args: &str) -> Result<()> {
    let script = format!("ping -q -c {count} -W 2 {args} {ADDRESS}");
    let text = bench.guest()?.run(&script, TIMEOUT)?.success("ping")?;
    if !text.contains(&format!("{count} received, 0% packet loss")) {
        bail!("expected {count} replies: {text}");
    }
    Ok(())
}

fn iperf3_in(bench: &mut Bench<'_>) -> Result<()> {
    iperf3(bench, "")
}

fn iperf3_out(bench: &mut Bench<'_>) -> Result<()> {
    iperf3(bench, "-R")
}

fn iperf3_parallel(bench: &mut Bench<'_>) -> Result<()> {
    iperf3(bench, "-P 4")?;
    iperf3(bench, "-P 4 -R")
}

fn iperf3_bidir(bench: &mut Bench<'_>) -> Result<()> {
    let (measurement, _) = domain::iperf3(bench.guest()?, GUEST, "--bidir", IPERF_TIME_S)?;
    let backward = measurement
        .backward
        .context("iperf3 reports one direction only")?;
    if measurement.forward.bytes == 0 || backward.bytes == 0 {
        bail!("a direction moved no bytes: {measurement:?}");
    }
    Ok(())
}

fn iperf3(bench: &mut Bench<'_>, args: &str) -> Result<()> {
    let (measurement, _) = domain::iperf3(bench.guest()?, GUEST, args, IPERF_TIME_S)?;
    if measurement.forward.bytes == 0 {
        bail!("iperf3 {args} moved no bytes");
    }
    Ok(())
}

fn short_cookie(bench: &mut Bench<'_>) -> Result<()> {
    let dom0 = bench.guest()?;
    let script = format!("{{ printf x; sleep 1; }} | timeout 5 nc {ADDRESS} 5201");
    dom0.run(&script, TIMEOUT)?;
    iperf3(bench, "")
}

fn reboot(bench: &mut Bench<'_>) -> Result<()> {
    let name = GUEST.name();
    let script = format!(
        "before=$(xl domid {name}) && xl reboot {name} || exit 1
tries=0
until now=$(xl domid {name} 2> /dev/null) && [ \"$now\" != \"$before\" ]; do
    [ $tries -lt 200 ] || {{ xl list; exit 1; }}
    tries=$((tries + 1))
    usleep 100000
done
# The new domain exists before its vif has an address: until then ping fails at once.
until ping -q -c 1 -w 1 {ADDRESS}; do
    [ $tries -lt 400 ] || exit 1
    tries=$((tries + 5))
    usleep 100000
done"
    );
    bench.guest()?.run(&script, TIMEOUT)?.success("xl reboot")?;
    Ok(())
}

fn shutdown(bench: &mut Bench<'_>) -> Result<()> {
    domain::shutdown(bench.guest()?, GUEST)?;
    bench.running = false;
    Ok(())
}

fn poweroff(bench: &mut Bench<'_>) -> Result<()> {
    let dom0 = bench.guest()?;
    domain::type_line(dom0, GUEST, "poweroff")?;
    domain::wait_gone(dom0, GUEST)?;
    bench.running = false;
    Ok(())
}

fn small_memory(bench: &mut Bench<'_>) -> Result<()> {
    let spec = Spec {
        memory_mib: SMALL_MEMORY_MIB,
        ..bench.spec()
    };
    bench.boot_afresh(&spec)?;
    bench.running = true;
    iperf3(bench, "")?;
    iperf3(bench, "-R")?;
    bench.no_guest()?;
    Ok(())
}

fn destroy_while_running(bench: &mut Bench<'_>) -> Result<()> {
    let name = GUEST.name();
    for args in ["", "-R"] {
        let script = format!(
            "iperf3 --client {ADDRESS} --time 60 {args} > /run/destroyed.txt 2>&1 &
client=$!
sleep 3
kill -0 $client || {{ cat /run/destroyed.txt; exit 1; }}
xl destroy {name} || exit 1
kill $client
wait
true"
        );
        let dom0 = bench.guest()?;
        dom0.run(&script, TIMEOUT)?
            .success("destroying a busy guest")?;
        domain::wait_gone(dom0, GUEST)?;
        bench.running = false;
    }
    // Nothing of the old guest may be in the way of the next.
    iperf3(bench, "")
}

fn bad_ip(bench: &mut Bench<'_>) -> Result<()> {
    let word = "ip=10.0.0.300::10.0.0.1:255.255.255.0";
    let spec = Spec {
        cmdline: word.to_owned(),
        ..bench.spec()
    };
    let dom0 = bench.no_guest()?;
    domain::create(dom0, &spec)?;
    crashed(dom0, &[&format!("'{word}': expected")])
}

fn panic(bench: &mut Bench<'_>) -> Result<()> {
    crash(bench, "crash panic", "panicked at")
}

fn fault(bench: &mut Bench<'_>) -> Result<()> {
    crash(bench, "crash fault", "page fault")
}

fn crash(bench: &mut Bench<'_>, line: &str, reason: &str) -> Result<()> {
    let dom0 = bench.guest()?;
    domain::type_line(dom0, GUEST, line)?;
    crashed(dom0, &[line, reason, "rip ", "return addresses"])?;
    bench.running = false;
    Ok(())
}

/// Expects the guest to become a crashed domain, with all of `texts` at the end of its console,
/// in that order, and takes the domain away.
fn crashed(dom0: &mut Agent, texts: &[&str]) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(20);
    let start = Instant::now();
    loop {
        let state = domain::state(dom0, GUEST)?;
        if state.as_ref().is_some_and(|state| state.contains('c')) {
            break;
        }
        if start.elapsed() > PATIENCE {
            let console = domain::console(dom0, GUEST)?;
            bail!("expected a crashed domain, xl says {state:?}; its console says:\n{console}");
        }
    }
    let console = domain::console(dom0, GUEST)?;
    // The log goes on over the boots of all guests: look at the last occurrence.
    let mut rest = &console[..];
    for (index, text) in texts.iter().enumerate() {
        let at = if index == 0 {
            rest.rfind(text)
        } else {
            rest.find(text)
        };
        let Some(at) = at else {
            bail!("expected `{text}` on the guest's console, it says:\n{console}");
        };
        rest = &rest[at + text.len()..];
    }
    domain::destroy(dom0, GUEST)?;
    domain::wait_gone(dom0, GUEST)
}

fn netback_content(bench: &mut Bench<'_>) -> Result<()> {
    // What netback says before it disables the vif of a guest that breaks its rules.
    let script = "dmesg | grep -E 'vif.*(fatal|disabl|[Ii]nvalid|too many|[Bb]ad)' || true";
    let text = bench.dom0()?.run(script, TIMEOUT)?.success("dmesg")?;
    if !text.is_empty() {
        bail!("netback complains:\n{text}");
    }
    Ok(())
}
