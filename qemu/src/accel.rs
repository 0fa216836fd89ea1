//! Choosing between KVM and TCG.
//!
//! That `/dev/kvm` exists and opens says little: inside a virtual machine it may start guests
//! that never get past their firmware. So a guest of a few bytes is booted, which reports through
//! the debug-exit device whether it also sees virtualisation of its own, which Xen needs for its
//! PVH domains.

use std::{
    fs::{self, OpenOptions},
    path::Path,
    time::Duration,
};

use anyhow::{Result, bail};

use crate::{
    cli::AccelChoice,
    clock::Clock,
    machine::{Machine, SerialPorts},
    progress::phase,
    tools,
    workspace::write_atomically,
};

/// What a boot needs of the processor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Use {
    /// The guest is booted by QEMU itself.
    Plain,
    /// Xen is booted, and starts hardware-virtualised domains.
    Xen,
}

/// The chosen accelerator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Accel {
    /// Hardware virtualisation.
    Kvm,
    /// QEMU's translator.
    Tcg {
        /// Its processor model has faults that Xen runs into. QEMU before 10: a PV dom0 dies with
        /// SMAP, a Linux PVH domain with PKU.
        old: bool,
        /// What it takes for time.
        clock: Clock,
    },
}

impl Accel {
    /// QEMU's arguments.
    pub(crate) fn args(self) -> Vec<String> {
        let (accel, cpu) = match self {
            Self::Kvm => (&["-accel", "kvm"][..], "host"),
            Self::Tcg { old: true, clock } => (clock.tcg_args(), "max,smap=off,pku=off"),
            Self::Tcg { old: false, clock } => (clock.tcg_args(), "max"),
        };
        [accel, &["-cpu", cpu]]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }

    /// What the machine takes for time.
    pub(crate) fn clock(self) -> Clock {
        match self {
            Self::Kvm => Clock::Host,
            Self::Tcg { old: _, clock } => clock,
        }
    }

    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg { .. } => "tcg",
        }
    }
}

const FIRST_FIXED_TCG_MAJOR: u32 = 10;
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// What the probe found, as QEMU's exit status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Probe {
    NoAnswer,
    Runs,
    RunsNested,
}

const REPORT_RUNS: u8 = 0x20;
const REPORT_RUNS_NESTED: u8 = 0x21;

impl Probe {
    fn from_status(code: Option<i32>) -> Self {
        // The device makes value v the status 2v + 1.
        match code {
            Some(code) if code == i32::from(REPORT_RUNS) * 2 + 1 => Self::Runs,
            Some(code) if code == i32::from(REPORT_RUNS_NESTED) * 2 + 1 => Self::RunsNested,
            _ => Self::NoAnswer,
        }
    }

    fn suits(self, purpose: Use) -> bool {
        match purpose {
            Use::Plain => self != Self::NoAnswer,
            Use::Xen => self == Self::RunsNested,
        }
    }
}

/// Chooses for `purpose`; probes at most once per boot of the host.
pub(crate) fn choose(rig: &Path, choice: AccelChoice, clock: Clock, purpose: Use) -> Result<Accel> {
    let (major, _) = tools::qemu_version()?;
    let tcg = Accel::Tcg {
        old: major < FIRST_FIXED_TCG_MAJOR,
        clock,
    };
    let kvm = match (choice, clock) {
        (AccelChoice::Kvm, Clock::Host) => true,
        (AccelChoice::Kvm, Clock::Instructions) => {
            bail!("only TCG counts instructions, and KVM was asked for")
        }
        (AccelChoice::Tcg, _) | (AccelChoice::Auto, Clock::Instructions) => false,
        (AccelChoice::Auto, Clock::Host) => probe(rig)?.suits(purpose),
    };
    Ok(if kvm { Accel::Kvm } else { tcg })
}

fn probe(rig: &Path) -> Result<Probe> {
    if OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_err()
    {
        return Ok(Probe::NoAnswer);
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let memory = rig.join("kvm-probe.txt");
    let remembered = fs::read_to_string(&memory).ok().and_then(|text| {
        let (code, of_boot) = text.split_once('\n')?;
        (of_boot == boot).then(|| Probe::from_status(code.parse().ok()))
    });
    if let Some(known) = remembered {
        return Ok(known);
    }
    let code = phase("kvm: probe", || {
        let image = rig.join("kvm-probe.elf");
        fs::write(&image, probe_image())?;
        let args = [
            "-accel",
            "kvm",
            "-cpu",
            "host",
            "-M",
            "q35",
            "-m",
            "32",
            "-nodefaults",
            "-device",
            "isa-debug-exit,iobase=0xf4,iosize=1",
            "-kernel",
            &image.to_string_lossy(),
        ]
        .map(str::to_owned);
        let machine = Machine::start(&args, SerialPorts::One, &rig.join("kvm-probe.log"))?;
        Ok(machine
            .wait(PROBE_TIMEOUT)?
            .and_then(|status| status.code()))
    })?;
    write_atomically(
        &memory,
        format!("{}\n{boot}", code.unwrap_or(-1)).as_bytes(),
    )?;
    Ok(Probe::from_status(code))
}

/// A multiboot kernel: asks CPUID for VMX and SVM, reports, halts.
fn probe_image() -> Vec<u8> {
    const LOAD_ADDRESS: u32 = 0x10_0000;
    const ELF_HEADER_BYTES: u16 = 52;
    const PROGRAM_HEADER_BYTES: u16 = 32;
    const MULTIBOOT_MAGIC: u32 = 0x1BAD_B002;
    #[rustfmt::skip]
    let code: [u8; 41] = [
        0xB8, 0x01, 0x00, 0x00, 0x00,       // mov eax, 1
        0x0F, 0xA2,                         // cpuid
        0xC1, 0xE9, 0x05,                   // shr ecx, 5       VMX is bit 5 of ECX
        0x83, 0xE1, 0x01,                   // and ecx, 1
        0x89, 0xCE,                         // mov esi, ecx
        0xB8, 0x01, 0x00, 0x00, 0x80,       // mov eax, 0x80000001
        0x0F, 0xA2,                         // cpuid
        0xC1, 0xE9, 0x02,                   // shr ecx, 2       SVM is bit 2 of ECX
        0x83, 0xE1, 0x01,                   // and ecx, 1
        0x09, 0xF1,                         // or ecx, esi
        0x83, 0xC1, REPORT_RUNS,            // add ecx, REPORT_RUNS
        0x89, 0xC8,                         // mov eax, ecx
        0xE6, 0xF4,                         // out 0xf4, al
        0xFA,                               // cli
        0xF4,                               // hlt
        0xEB, 0xFC,                         // jmp back to cli
    ];
    let headers = u32::from(ELF_HEADER_BYTES + PROGRAM_HEADER_BYTES);
    let multiboot = [MULTIBOOT_MAGIC, 0, 0_u32.wrapping_sub(MULTIBOOT_MAGIC)];
    let size = headers + size_of_val(&multiboot) as u32 + code.len() as u32;
    let entry = LOAD_ADDRESS + size - code.len() as u32;

    let mut image = b"\x7FELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |image: &mut Vec<u8>, value: u16| image.extend_from_slice(&value.to_le_bytes());
    let word = |image: &mut Vec<u8>, value: u32| image.extend_from_slice(&value.to_le_bytes());
    half(&mut image, 2); // ET_EXEC
    half(&mut image, 3); // EM_386
    for value in [1, entry, u32::from(ELF_HEADER_BYTES), 0, 0] {
        word(&mut image, value); // version, entry, program headers, sections, flags
    }
    for value in [ELF_HEADER_BYTES, PROGRAM_HEADER_BYTES, 1, 0, 0, 0] {
        half(&mut image, value);
    }
    for value in [1, 0, LOAD_ADDRESS, LOAD_ADDRESS, size, size, 5, 0x1000] {
        word(&mut image, value); // PT_LOAD, offset, addresses, sizes, read and execute, alignment
    }
    for value in multiboot {
        word(&mut image, value);
    }
    image.extend_from_slice(&code);
    image
}

#[cfg(test)]
mod tests;
