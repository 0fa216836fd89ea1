//! Guests in dom0's hands: creating, watching, measuring and ending them with `xl`.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{
    agent::Agent,
    iperf::{self, Measurement},
};

const CREATE_TIMEOUT: Duration = Duration::from_mins(1);
/// What to look at when a guest does not answer.
const STATE_OF_THE_VIF: &str = "xl list
ip -brief address
ip neighbour
xenstore-ls /local/domain/0/backend/vif
dmesg | tail -n 8
tail -n 8 /var/log/xen/xl-*.log";
const SHUTDOWN_TIMEOUT: Duration = Duration::from_mins(1);
const XL_TIMEOUT: Duration = Duration::from_secs(30);

/// Which guest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The reference: dom0's kernel with an iperf3 server.
    Linux,
    /// Paceline.
    Paceline,
}

impl Kind {
    /// Its name as a domain and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Paceline => "paceline",
        }
    }

    /// Its address, in a network of its own so that both guests can live at the same time.
    pub(crate) const fn address(self) -> &'static str {
        match self {
            Self::Linux => "10.0.1.2",
            Self::Paceline => "10.0.0.2",
        }
    }

    /// dom0's address on the guest's vif, where the hotplug script puts it.
    const fn gateway(self) -> &'static str {
        match self {
            Self::Linux => "10.0.1.1",
            Self::Paceline => "10.0.0.1",
        }
    }

    const fn mac(self) -> &'static str {
        match self {
            Self::Linux => "00:16:3e:00:01:02",
            Self::Paceline => "00:16:3e:00:00:02",
        }
    }

    fn default_memory_mib(self) -> u32 {
        match self {
            Self::Linux => 256,
            Self::Paceline => 64,
        }
    }

    /// How long after its creation it may take to answer.
    fn answer_timeout_s(self) -> u32 {
        match self {
            Self::Linux => 120,
            Self::Paceline => 30,
        }
    }
}

/// What a domain is made from.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// Which guest.
    pub(crate) kind: Kind,
    /// Its memory.
    pub(crate) memory_mib: u32,
    /// Its command line.
    pub(crate) cmdline: String,
}

impl Spec {
    /// The usual domain of `kind` with further words on Paceline's command line.
    pub(crate) fn new(kind: Kind, memory_mib: Option<u32>, words: &str) -> Self {
        let (address, gateway) = (kind.address(), kind.gateway());
        let cmdline = match kind {
            // The kernel leaves words it does not know to its first process, as variables.
            Kind::Linux => format!(
                "console=hvc0 loglevel=4 mitigations=off guest_address={address} \
                 guest_gateway={gateway}"
            ),
            Kind::Paceline => format!("ip={address}::{gateway}:255.255.255.0 {words}")
                .trim_end()
                .to_owned(),
        };
        Self {
            kind,
            memory_mib: memory_mib.unwrap_or(kind.default_memory_mib()),
            cmdline,
        }
    }

    /// The configuration file for `xl create`.
    fn config(&self) -> String {
        let Self {
            kind,
            memory_mib,
            cmdline,
        } = self;
        let (name, mac, address) = (kind.name(), kind.mac(), kind.address());
        let own = match kind {
            // QEMU's emulated SVM reports no instruction length for RDTSCP, and Xen then ends
            // the domain that executed it.
            Kind::Linux => "ramdisk = \"/guest/linux.initrd\"\ncpuid = \"host,rdtscp=0\"\n",
            Kind::Paceline => "",
        };
        // Xen holds the emulated machine's TSC for unreliable and would trap every reading of it,
        // which hardware of the last ten years spares a guest; Linux reads it for each packet.
        // A crashed domain stays to be looked at.
        format!(
            "name = \"{name}\"\ntype = \"pvh\"\nkernel = \"/guest/{name}\"\n{own}\
             cmdline = \"{cmdline}\"\nmemory = {memory_mib}\nvcpus = 1\ncpus = \"1\"\n\
             tsc_mode = \"native\"\n\
             vif = [\"mac={mac},ip={address},script=vif-paceline\"]\n\
             on_poweroff = \"destroy\"\non_reboot = \"restart\"\non_crash = \"preserve\"\n"
        )
    }
}

/// Seconds of a start.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(crate) struct BootTimes {
    /// `xl create`, from start to return.
    pub(crate) create_s: f64,
    /// From its return to the first echo reply.
    pub(crate) first_ping_s: f64,
}

/// vCPU seconds of a guest and of dom0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CpuTimes {
    /// dom0's.
    pub(crate) dom0_s: f64,
    /// The guest's.
    pub(crate) guest_s: f64,
}

/// `xl create`, without waiting for the guest.
pub(crate) fn create(dom0: &mut Agent, spec: &Spec) -> Result<()> {
    let name = spec.kind.name();
    let config = spec.config();
    let script =
        format!("cat > /run/{name}.cfg <<'END'\n{config}END\nxl create -q /run/{name}.cfg");
    dom0.run(&script, CREATE_TIMEOUT)?.success("xl create")?;
    Ok(())
}

/// Creates the domain and waits for its first echo reply.
pub(crate) fn boot(dom0: &mut Agent, spec: &Spec) -> Result<BootTimes> {
    let (name, address) = (spec.kind.name(), spec.kind.address());
    let limit_s = spec.kind.answer_timeout_s();
    let config = spec.config();
    // /proc/uptime counts in hundredths: without its point it is a number for the shell.
    let script = format!(
        "cat > /run/{name}.cfg <<'END'\n{config}END
now() {{ read -r up _ < /proc/uptime; echo \"${{up%.*}}${{up#*.}}\"; }}
before=$(now)
xl create -q /run/{name}.cfg || exit 1
created=$(now)
until ping -q -c 1 -W 0.1 {address} > /dev/null 2>&1; do
    [ $(($(now) - created)) -lt {limit_s}00 ] || {{ xl list; exit 2; }}
done
echo \"$((created - before)) $(($(now) - created))\""
    );
    let timeout = CREATE_TIMEOUT + Duration::from_secs(limit_s.into());
    let reply = dom0.run(&script, timeout)?;
    if reply.code == 2 {
        let console = console(dom0, spec.kind)?;
        let state = dom0.run(STATE_OF_THE_VIF, XL_TIMEOUT)?.text;
        bail!(
            "{name} answered no ping within {limit_s} s; in dom0:\n{state}\n\
             its console says:\n{console}"
        );
    }
    let text = reply.success("xl create")?;
    // What xl has to say of its configuration comes before.
    let times: Vec<f64> = text
        .lines()
        .next_back()
        .unwrap_or_default()
        .split_whitespace()
        .map(|word| {
            word.parse::<u32>()
                .map(|hundredths| f64::from(hundredths) / 100.0)
        })
        .collect::<Result<_, _>>()
        .with_context(|| format!("expected two times of dom0, got `{text}`"))?;
    let [create_s, first_ping_s] = times[..] else {
        bail!("expected two times of dom0, got `{text}`");
    };
    Ok(BootTimes {
        create_s,
        first_ping_s,
    })
}

/// What dom0 and the guest's own shell say of a guest in trouble.
pub(crate) fn diagnosis(dom0: &mut Agent, kind: Kind) -> Result<String> {
    let (name, address) = (kind.name(), kind.address());
    let ping = format!("ping -q -c 3 -i 0.2 -W 1 {address}");
    let ask = match kind {
        Kind::Linux => "true",
        Kind::Paceline => {
            "printf 'ip\\r' > $(xenstore-read /local/domain/$(xl domid paceline)/console/tty)
sleep 1"
        }
    };
    let script = format!(
        "{ping}
{STATE_OF_THE_VIF}
{ask}
echo \"{name}'s console:\"
tail -n 40 /var/log/xen/console/guest-{name}.log"
    );
    Ok(dom0.run(&script, XL_TIMEOUT)?.text)
}

/// Both domains' CPU seconds in what `xl list` says.
fn cpu_times(text: &str, kind: Kind) -> Result<CpuTimes> {
    let seconds = |name: &str| {
        let line = list_line(text, name)?;
        Some(line.time_s)
    };
    let missing = || format!("expected Domain-0 and {} in `{text}`", kind.name());
    Ok(CpuTimes {
        dom0_s: seconds("Domain-0").with_context(missing)?,
        guest_s: seconds(kind.name()).with_context(missing)?,
    })
}

/// dom0's CPU seconds for one `xl list`, from several in a row: xl counts in tenths.
///
/// Between the readings around a measurement lie the end of one and the start of the next, as much
/// as a whole one in all: a seventh of a second under TCG, which a short slice would show.
pub(crate) fn reading_cost(dom0: &mut Agent) -> Result<f64> {
    const READINGS: u32 = 10;
    let script = format!(
        "xl list
left={READINGS}
while [ $left -gt 1 ]; do
    xl list > /dev/null
    left=$((left - 1))
done
xl list"
    );
    let text = dom0.run(&script, XL_TIMEOUT)?.success("xl list")?;
    let span_s =
        dom0_span(&text).with_context(|| format!("expected Domain-0 twice in `{text}`"))?;
    Ok(span_s / f64::from(READINGS))
}

/// dom0's CPU seconds between two lists.
fn dom0_span(text: &str) -> Option<f64> {
    let lines = text.lines().filter_map(|line| list_line(line, "Domain-0"));
    match lines.collect::<Vec<_>>()[..] {
        [ref first, ref last] => Some(last.time_s - first.time_s),
        _ => None,
    }
}

/// A domain's state letters in `xl list`, `None` when there is no such domain.
pub(crate) fn state(dom0: &mut Agent, kind: Kind) -> Result<Option<String>> {
    let text = dom0.run("xl list", XL_TIMEOUT)?.success("xl list")?;
    Ok(list_line(&text, kind.name()).map(|line| line.state.to_owned()))
}

/// Everything the guest has written to its console.
pub(crate) fn console(dom0: &mut Agent, kind: Kind) -> Result<String> {
    let script = format!("cat /var/log/xen/console/guest-{}.log", kind.name());
    Ok(dom0.run(&script, XL_TIMEOUT)?.text)
}

/// Copies the guest's console to dom0's, so that it is in the log.
pub(crate) fn follow_console(dom0: &mut Agent, kind: Kind) -> Result<()> {
    let name = kind.name();
    let script = format!(
        "{{
    tail -n +1 -F /var/log/xen/console/guest-{name}.log |
    while IFS= read -r line; do printf '[{name}] %s\\n' \"$line\"; done
}} > /dev/hvc0 2> /dev/null &"
    );
    dom0.run(&script, XL_TIMEOUT)?
        .success("following the guest's console")?;
    Ok(())
}

/// Asks the guest to power off and waits until it is gone.
pub(crate) fn shutdown(dom0: &mut Agent, kind: Kind) -> Result<()> {
    let name = kind.name();
    let script = format!("timeout 30 xl shutdown -w {name}");
    dom0.run(&script, SHUTDOWN_TIMEOUT)?
        .success("xl shutdown -w")?;
    wait_gone(dom0, kind)
}

/// Waits until xl has taken the ended domain apart.
pub(crate) fn wait_gone(dom0: &mut Agent, kind: Kind) -> Result<()> {
    let name = kind.name();
    let script = format!(
        "tries=0
while xl domid {name} > /dev/null 2>&1; do
    [ $tries -lt 100 ] || {{ xl list; exit 1; }}
    tries=$((tries + 1))
    usleep 100000
done"
    );
    dom0.run(&script, SHUTDOWN_TIMEOUT)?
        .success(&format!("waiting for the end of domain {name}"))?;
    Ok(())
}

/// Ends the domain without asking.
pub(crate) fn destroy(dom0: &mut Agent, kind: Kind) -> Result<()> {
    dom0.run(&format!("xl destroy {}", kind.name()), XL_TIMEOUT)?
        .success("xl destroy")?;
    Ok(())
}

/// Runs dom0's iperf3 as client of the guest for `time_s` and says what that cost, one reading of
/// the costs included.
pub(crate) fn iperf3(
    dom0: &mut Agent,
    kind: Kind,
    args: &str,
    time_s: u32,
) -> Result<(Measurement, CpuTimes)> {
    const SLACK_S: u32 = 30;
    /// What `timeout` makes of a command it had to end.
    const TIMED_OUT: i32 = 143;
    let address = kind.address();
    let limit_s = time_s + SLACK_S;
    // A guest that answers pings may still be about to listen: a refused connection is tried again
    // for a while. Nothing is written to the slow serial port between the two readings.
    let script = format!(
        "tries=0
while true; do
    xl list > /run/before.txt
    timeout {limit_s} iperf3 --client {address} --json --interval 0 --time {time_s} {args} \
        > /run/iperf3.json 2>&1
    code=$?
    xl list > /run/after.txt
    grep -q 'Connection refused' /run/iperf3.json && [ $tries -lt 50 ] || break
    tries=$((tries + 1))
    usleep 100000
done
cat /run/before.txt
echo {PART}
cat /run/after.txt
echo {PART}
cat /run/iperf3.json
exit $code"
    );
    let reply = dom0.run(&script, Duration::from_secs((limit_s + SLACK_S).into()))?;
    if reply.code == TIMED_OUT {
        bail!("iperf3 {args}: not finished after {limit_s} s");
    }
    let what = || format!("iperf3 {args}, exit code {}", reply.code);
    measured(&reply.text, kind).with_context(what)
}

/// Separates the parts of what a script says.
const PART: &str = "----";

/// Reads `xl list` before, `xl list` after and iperf3's report.
fn measured(text: &str, kind: Kind) -> Result<(Measurement, CpuTimes)> {
    let separator = format!("{PART}\n");
    let parts: Vec<_> = text.splitn(3, &separator).collect();
    let [before, after, report] = parts[..] else {
        bail!("expected two lists of domains and a report, got `{text}`");
    };
    // A run that failed is told as such, whatever became of the guest.
    let measurement = iperf::parse(report)?;
    let (before, after) = (cpu_times(before, kind)?, cpu_times(after, kind)?);
    let cost = CpuTimes {
        dom0_s: after.dom0_s - before.dom0_s,
        guest_s: after.guest_s - before.guest_s,
    };
    Ok((measurement, cost))
}

/// Types a line on the guest's console.
pub(crate) fn type_line(dom0: &mut Agent, kind: Kind, line: &str) -> Result<()> {
    let name = kind.name();
    let script = format!(
        "tty=$(xenstore-read /local/domain/$(xl domid {name})/console/tty) &&
printf '%s\\r' '{line}' > $tty"
    );
    dom0.run(&script, XL_TIMEOUT)?
        .success("typing on the guest's console")?;
    Ok(())
}

struct ListLine<'a> {
    state: &'a str,
    time_s: f64,
}

/// The line of `xl list` for `name`: name, id, memory, vCPUs, state, time.
fn list_line<'a>(text: &'a str, name: &str) -> Option<ListLine<'a>> {
    text.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        match fields[..] {
            [found, _id, _memory, _vcpus, state, time] if found == name => Some(ListLine {
                state,
                time_s: time.parse().ok()?,
            }),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests;
