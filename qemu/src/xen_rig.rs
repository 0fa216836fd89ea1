//! Xen and dom0 inside QEMU, up to the point where guests can be created.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::{
    accel::{self, Accel, Use},
    agent::Agent,
    cli::{GuestChoice, RigOptions},
    cpio::Archive,
    guest::Image,
    initramfs::{self, Parts},
    machine::{Machine, SerialPorts},
    os_release::Release,
    packages,
    progress::phase,
    rootfs::RootFs,
    tools,
    workspace::{Workspace, read, write_atomically},
};

const BOOT_TIMEOUT: Duration = Duration::from_mins(2);
const XEN_ARGS: &str = "console=com1 com1=115200,8n1 dom0_mem=1024M,max:1024M dom0_max_vcpus=1 \
                        dom0_vcpus_pin noreboot";
const DOM0_ARGS: &str = "console=hvc0 loglevel=4 mitigations=off";
const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];

/// A running Xen with its dom0.
#[derive(Debug)]
pub(crate) struct XenRig {
    /// dom0.
    pub(crate) dom0: Agent,
    /// What is running.
    pub(crate) versions: Versions,
    /// How it is running.
    pub(crate) accel: Accel,
    /// Seconds of the host from QEMU's start to the agent's greeting.
    pub(crate) dom0_ready_s: f64,
}

/// Versions for the report.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub(crate) struct Versions {
    /// QEMU's.
    pub(crate) qemu: String,
    /// The hypervisor's.
    pub(crate) xen: String,
    /// dom0's kernel, the Linux guest's as well.
    pub(crate) dom0_kernel: String,
    /// dom0's iperf3.
    pub(crate) iperf3: String,
}

/// The files dom0 is booted from.
#[derive(Debug)]
pub(crate) struct BootFiles {
    xen: PathBuf,
    kernel: PathBuf,
    initrd: PathBuf,
}

/// Gets everything a boot needs: packages, archives, guests.
pub(crate) fn prepare(
    workspace: &Workspace,
    options: &RigOptions,
    guests: GuestChoice,
    image: Option<&Image>,
) -> Result<BootFiles> {
    let rig = workspace.rig()?;
    let (parts, cache) = parts(&rig, options)?;
    phase("dom0: initramfs", || {
        let mut archives = vec![initramfs::dom0(&parts, &cache)?];
        if guests.linux() {
            archives.push(initramfs::linux_guest(&parts, &cache)?);
        }
        let initrd = rig.join("dom0.initrd");
        let mut file = File::create(&initrd)?;
        for archive in archives {
            file.write_all(&read(&archive)?)?;
        }
        if let Some(image) = image {
            let mut archive = Archive::new();
            archive.file("guest/paceline", false, &image.bytes);
            file.write_all(&archive.finish())?;
        }
        Ok(BootFiles {
            xen: parts.xen.clone(),
            kernel: parts.kernel.clone(),
            initrd,
        })
    })
}

/// The parts given by the user, the rest from the host's release.
fn parts(rig: &Path, options: &RigOptions) -> Result<(Parts, PathBuf)> {
    let RigOptions {
        xen,
        kernel,
        modules,
        tools,
        ..
    } = options;
    if let (Some(xen), Some(kernel), Some(modules), Some(tools)) = (xen, kernel, modules, tools) {
        let cache = rig.join("given");
        fs::create_dir_all(&cache)?;
        let identity = identity(&[xen, kernel, modules, tools])?;
        let tools = RootFs::new(tools.clone());
        let xen = hypervisor(xen, &tools, &cache)?;
        let (kernel, modules) = (kernel.clone(), modules.clone());
        return Ok((
            Parts {
                xen,
                kernel,
                modules,
                tools,
                identity,
            },
            cache,
        ));
    }
    let release = Release::of_host()?;
    let tree = packages::tree(rig, release)?;
    let cache = rig.join(release.folder());
    let boot = tree.root.join("boot");
    let given: Vec<_> = [xen, kernel, modules, tools]
        .into_iter()
        .flatten()
        .collect();
    let identity = format!("{}{}", tree.identity, identity(&given)?);
    let default_xen = boot.join(format!("xen-{}-amd64.gz", release.xen()));
    let default_kernel = only(&boot, "vmlinuz-")?;
    let default_modules = only_of(&tree.root, &["usr/lib/modules", "lib/modules"])?;
    let tools = RootFs::new(tools.clone().unwrap_or(tree.root));
    let xen = hypervisor(xen.as_deref().unwrap_or(&default_xen), &tools, &cache)?;
    let kernel = kernel.clone().unwrap_or(default_kernel);
    let modules = modules.clone().unwrap_or(default_modules);
    Ok((
        Parts {
            xen,
            kernel,
            modules,
            tools,
            identity,
        },
        cache,
    ))
}

/// Names, sizes and times of files given by the user.
fn identity(files: &[&PathBuf]) -> Result<String> {
    let line = |file: &&PathBuf| -> Result<String> {
        let metadata =
            fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
        let (len, modified) = (metadata.len(), metadata.modified()?);
        Ok(format!("{} {len} {modified:?}\n", file.display()))
    };
    files.iter().map(line).collect()
}

/// QEMU's multiboot loader wants an ELF file: unpacks a gzipped hypervisor.
fn hypervisor(file: &Path, tools: &RootFs, cache: &Path) -> Result<PathBuf> {
    if !read(file)?.starts_with(&GZIP_MAGIC) {
        return Ok(file.to_path_buf());
    }
    let unpacked = cache.join("xen");
    let path = file
        .to_str()
        .context("the hypervisor's path is not UTF-8")?;
    write_atomically(&unpacked, &tools.busybox(&["zcat", path])?)?;
    Ok(unpacked)
}

/// The only entry of `folder` whose name starts with `prefix`.
fn only(folder: &Path, prefix: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect::<Vec<_>>();
    match &entries[..] {
        [only] => Ok(only.clone()),
        _ => bail!(
            "expected one {prefix}* in {}, found {}",
            folder.display(),
            entries.len()
        ),
    }
}

fn only_of(root: &Path, folders: &[&str]) -> Result<PathBuf> {
    let folder = folders
        .iter()
        .map(|folder| root.join(folder))
        .find(|folder| folder.is_dir());
    only(
        &folder.with_context(|| format!("no kernel modules below {}", root.display()))?,
        "",
    )
}

impl XenRig {
    /// QEMU's arguments for a boot.
    fn args(files: &BootFiles, accel: Accel) -> Vec<String> {
        let mut args = accel.args();
        // A comma separates modules and is written twice inside one.
        let module = |path: &Path| path.to_string_lossy().replace(',', ",,");
        let modules = format!(
            "{} {DOM0_ARGS},{}",
            module(&files.kernel),
            module(&files.initrd)
        );
        args.extend(["-M", "q35", "-smp", "2", "-m", "2560", "-nic", "none"].map(str::to_owned));
        args.extend([
            "-kernel".to_owned(),
            files.xen.to_string_lossy().into_owned(),
        ]);
        args.extend([
            "-append".to_owned(),
            XEN_ARGS.to_owned(),
            "-initrd".to_owned(),
            modules,
        ]);
        args
    }

    /// Boots and waits for dom0's agent.
    pub(crate) fn boot(
        workspace: &Workspace,
        options: &RigOptions,
        files: &BootFiles,
    ) -> Result<Self> {
        let (machine, accel) = Self::start(workspace, options, files)?;
        phase("xen: boot dom0", || {
            let start = Instant::now();
            let (mut dom0, _) = Agent::connect(machine, BOOT_TIMEOUT, accel.clock().patience())?;
            let dom0_ready_s = start.elapsed().as_secs_f64();
            let versions = versions(&mut dom0)?;
            Ok(Self {
                dom0,
                versions,
                accel,
                dom0_ready_s,
            })
        })
    }

    /// Starts QEMU without waiting for dom0.
    fn start(
        workspace: &Workspace,
        options: &RigOptions,
        files: &BootFiles,
    ) -> Result<(Machine, Accel)> {
        let rig = workspace.rig()?;
        let accel = accel::choose(&rig, options.accel, options.clock, Use::Xen)?;
        let args = Self::args(files, accel);
        let machine = Machine::start(&args, SerialPorts::Two, &rig.join("serial.log"))?;
        Ok((machine, accel))
    }

    /// Ends in an error that shows the console's end.
    pub(crate) fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        let tail = self.dom0.machine().log_tail();
        error.context(format!(
            "the run failed; dom0's console ends with:\n{tail}\n\nfailure"
        ))
    }
}

fn versions(dom0: &mut Agent) -> Result<Versions> {
    const TIMEOUT: Duration = Duration::from_secs(30);
    let script = "xl info xen_version && uname -r && iperf3 --version | head -n 1";
    let text = dom0.run(script, TIMEOUT)?.success("versions")?;
    let lines: Vec<_> = text.lines().collect();
    let [xen, kernel, iperf3] = lines[..] else {
        bail!("expected three versions of dom0, got `{text}`");
    };
    Ok(Versions {
        qemu: tools::qemu_version()?.1,
        xen: xen.to_owned(),
        dom0_kernel: kernel.to_owned(),
        iperf3: iperf3
            .split_whitespace()
            .nth(1)
            .unwrap_or(iperf3)
            .to_owned(),
    })
}

#[cfg(test)]
mod tests;
