//! The guest under QEMU without Xen: fast to boot, with virtio-net on user-mode networking.

use std::{
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    accel::{self, Use},
    cli::AccelChoice,
    clock::Clock,
    iperf::{self, Measurement},
    machine::{Machine, SerialPorts},
};

/// The address that QEMU's user-mode network gives the first guest.
pub(crate) const IP: &str = "ip=10.0.2.15::10.0.2.2:255.255.255.0";

const IPERF_PORT: u16 = 5201;

/// QEMU's exit status after the guest powered off: it writes 0x10 to the debug-exit device.
pub(crate) const STATUS_OFF: i32 = 0x10 * 2 + 1;
/// After a crash: the guest writes 0x7F.
pub(crate) const STATUS_CRASH: i32 = 0x7F * 2 + 1;

/// Which machine QEMU makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Model {
    /// ISA and virtio-mmio, no PCI, no ACPI.
    Microvm,
    /// A PC with PCI Express.
    Q35,
}

impl Model {
    /// QEMU's name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Microvm => "microvm",
            Self::Q35 => "q35",
        }
    }

    fn nic(self) -> &'static str {
        match self {
            Self::Microvm => "virtio-net-device",
            Self::Q35 => "virtio-net-pci",
        }
    }
}

/// A guest under plain QEMU.
#[derive(Debug)]
pub(crate) struct Plain {
    machine: Machine,
    port: u16,
}

impl Plain {
    /// Boots `image`; the console goes to a log in `rig`.
    pub(crate) fn boot(
        rig: &Path,
        accel: AccelChoice,
        model: Model,
        image: &Path,
        cmdline: &str,
    ) -> Result<Self> {
        let port = free_port()?;
        let mut args = accel::choose(rig, accel, Clock::Host, Use::Plain)?.args();
        let forward = format!("user,id=net0,hostfwd=tcp:127.0.0.1:{port}-:{IPERF_PORT}");
        let nic = format!("{},netdev=net0", model.nic());
        args.extend(["-nodefaults", "-no-user-config", "-M", model.name()].map(str::to_owned));
        args.extend(["-m", "64", "-smp", "1"].map(str::to_owned));
        args.extend(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"].map(str::to_owned));
        args.extend(["-netdev".to_owned(), forward, "-device".to_owned(), nic]);
        args.extend(["-kernel".to_owned(), image.to_string_lossy().into_owned()]);
        args.extend(["-append".to_owned(), cmdline.to_owned()]);
        let log = rig.join(format!("{}.log", model.name()));
        Ok(Self {
            machine: Machine::start(&args, SerialPorts::One, &log)?,
            port,
        })
    }

    /// Waits for a line of the console with `text` in it.
    pub(crate) fn expect(&mut self, text: &str, timeout: Duration) -> Result<String> {
        match self.machine.console.wait_for(text, timeout) {
            Some(said) => Ok(said),
            None => {
                bail!(
                    "no `{text}` within {timeout:?}; the console says:\n{}",
                    self.machine.log_tail()
                )
            }
        }
    }

    /// Types a line.
    pub(crate) fn type_line(&mut self, line: &str) -> Result<()> {
        self.machine.console.send(&format!("{line}\r"))
    }

    /// Expects QEMU to end with `status`.
    pub(crate) fn expect_end(&self, status: i32, timeout: Duration) -> Result<()> {
        let ended = self.machine.wait(timeout)?;
        match ended.map(|ended: ExitStatus| ended.code()) {
            Some(code) if code == Some(status) => Ok(()),
            Some(code) => bail!(
                "expected QEMU to end with status {status}, got {code:?}; the console says:\n{}",
                self.machine.log_tail()
            ),
            None => bail!(
                "QEMU still runs after {timeout:?}; the console says:\n{}",
                self.machine.log_tail()
            ),
        }
    }

    /// Everything the console said.
    pub(crate) fn console(&self) -> String {
        self.machine.console.text()
    }

    /// Runs the host's iperf3 against the forwarded port.
    pub(crate) fn iperf3(&self, args: &[&str], time_s: u32) -> Result<Measurement> {
        const SLACK_S: u32 = 20;
        let output = Command::new("timeout")
            .arg((time_s + SLACK_S).to_string())
            .args([
                "iperf3",
                "--client",
                "127.0.0.1",
                "--port",
                &self.port.to_string(),
            ])
            .args(["--json", "--interval", "0", "--time", &time_s.to_string()])
            .args(args)
            .output()
            .context("cannot start iperf3")?;
        iperf::parse(&String::from_utf8_lossy(&output.stdout)).with_context(|| {
            format!(
                "{}; the console says:\n{}",
                output.status,
                self.machine.log_tail()
            )
        })
    }
}

/// A port nobody listens on at the moment.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
