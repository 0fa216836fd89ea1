//! dom0's initramfs and the Linux guest's.
//!
//! dom0's archive is large and depends only on the packages: it is built once. What changes from
//! run to run, the guests, is a second small archive; the kernel unpacks both.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::{
    cpio::Archive,
    modules::ModuleFolder,
    rootfs::RootFs,
    workspace::{read, write_atomically},
};

const DOM0_INIT: &str = include_str!("../dom0/init");
const DOM0_AGENT: &str = include_str!("../dom0/agent");
const DOM0_VIF: &str = include_str!("../dom0/vif-paceline");
const DOM0_ALIASES: &str = include_str!("../dom0/aliases");
const LINUX_INIT: &str = include_str!("../linux/init");

const DOM0_PROGRAMS: [&str; 11] = [
    "busybox",
    "ip",
    "iperf",
    "iperf3",
    "ping",
    "tc",
    "tcpdump",
    "xenstore-ls",
    "xenstore-read",
    "xenstore-rm",
    "xenstore-write",
];
/// Xen's private programs, which lie in a folder that carries the version.
const XEN_PROGRAMS: [&str; 7] = [
    "libxl-save-helper",
    "xen-init-dom0",
    "xenconsole",
    "xenconsoled",
    "xenctx",
    "xenstored",
    "xl",
];
/// In the order of loading: xen-privcmd precedes the mount of xenfs.
const DOM0_MODULES: [&str; 12] = [
    "xen-privcmd",
    "xenfs",
    "xen-evtchn",
    "xen-gntdev",
    "xen-gntalloc",
    "llc",
    "stp",
    "bridge",
    "xen-netback",
    "sch_netem",
    "sch_fq",
    "tun",
];
const LINUX_MODULES: [&str; 2] = ["xenfs", "xen-netfront"];
const LINUX_PROGRAMS: [&str; 2] = ["busybox", "iperf3"];

/// What dom0 is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The hypervisor, an ELF file.
    pub(crate) xen: PathBuf,
    /// dom0's kernel, the Linux guest's as well.
    pub(crate) kernel: PathBuf,
    /// That kernel's modules.
    pub(crate) modules: PathBuf,
    /// The tree the programs come from.
    pub(crate) tools: RootFs,
    /// Changes when any of them does.
    pub(crate) identity: String,
}

/// dom0's archive, from `cache` when that was built from the same parts.
pub(crate) fn dom0(parts: &Parts, cache: &Path) -> Result<PathBuf> {
    let scripts = (DOM0_INIT, DOM0_AGENT, DOM0_VIF, DOM0_ALIASES);
    let recipe = (scripts, DOM0_PROGRAMS, XEN_PROGRAMS, DOM0_MODULES);
    cached(parts, cache, "dom0", &recipe, || build_dom0(parts))
}

/// The archive with the Linux guest for dom0: its kernel and its own initramfs.
pub(crate) fn linux_guest(parts: &Parts, cache: &Path) -> Result<PathBuf> {
    let recipe = (LINUX_INIT, LINUX_PROGRAMS, LINUX_MODULES);
    cached(parts, cache, "linux", &recipe, || {
        let mut archive = Archive::new();
        archive.file("guest/linux", false, &read(&parts.kernel)?);
        archive.file("guest/linux.initrd", false, &build_linux(parts)?);
        Ok(archive.finish())
    })
}

fn cached(
    parts: &Parts,
    cache: &Path,
    name: &str,
    recipe: &impl Hash,
    build: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    recipe.hash(&mut hasher);
    let stamp = format!("recipe {:016x}\n{}", hasher.finish(), parts.identity);
    let (archive, stamp_file) = (
        cache.join(format!("{name}.cpio")),
        cache.join(format!("{name}.stamp")),
    );
    if archive.is_file() && fs::read_to_string(&stamp_file).is_ok_and(|found| found == stamp) {
        return Ok(archive);
    }
    // The stamp must never be older than an archive it does not describe.
    if stamp_file.exists() {
        fs::remove_file(&stamp_file)?;
    }
    write_atomically(&archive, &build()?)?;
    write_atomically(&stamp_file, stamp.as_bytes())?;
    Ok(archive)
}

fn skeleton() -> Archive {
    let mut archive = Archive::new();
    for (link, target) in [
        ("bin", "usr/bin"),
        ("sbin", "usr/sbin"),
        ("lib", "usr/lib"),
        ("lib64", "usr/lib64"),
    ] {
        archive.link(link, target);
    }
    for folder in [
        "dev", "etc", "proc", "run", "sys", "tmp", "usr/bin", "usr/sbin", "usr/lib",
    ] {
        archive.folder(folder);
    }
    archive.device("dev/console", 5, 1);
    archive.device("dev/null", 1, 3);
    archive
}

fn add_modules(archive: &mut Archive, parts: &Parts, names: &[&str]) -> Result<()> {
    let mut order = String::new();
    for module in ModuleFolder::open(&parts.modules)?.in_load_order(names, &parts.tools)? {
        // `lib` is a link: the archive must name the real folder.
        archive.file(
            &format!("usr/lib/modules/{}.ko", module.name),
            false,
            &module.bytes,
        );
        order.push_str(&module.name);
        order.push('\n');
    }
    archive.file("usr/lib/modules/order", false, order.as_bytes());
    Ok(())
}

fn build_dom0(parts: &Parts) -> Result<Vec<u8>> {
    let mut archive = skeleton();
    archive.folder("var");
    archive.link("var/run", "/run");
    archive.link("var/lock", "/run/lock");
    let tools = &parts.tools;
    for name in DOM0_PROGRAMS {
        tools.add(
            &mut archive,
            &format!("usr/bin/{name}"),
            &tools.program(name)?,
        )?;
    }
    // Debian's busybox prefers its own applets to programs in PATH, ping and ip among them, so
    // the scripts need another shell.
    let shell = tools.program("dash").or_else(|_| tools.program("bash"))?;
    tools.add(&mut archive, "usr/bin/sh", &shell)?;
    let folder = tools.xen_programs()?;
    for name in XEN_PROGRAMS {
        let path = format!("{folder}/{name}");
        tools.add(&mut archive, &path, &tools.root().join(&path))?;
    }
    add_modules(&mut archive, parts, &DOM0_MODULES)?;
    archive.file("etc/xen/xl.conf", false, b"autoballoon=\"off\"\n");
    archive.file("etc/xen/scripts/vif-paceline", true, DOM0_VIF.as_bytes());
    archive.file(
        "etc/paceline-rig",
        false,
        format!("XEN_PROGRAMS=/{folder}\n").as_bytes(),
    );
    archive.file("etc/aliases", false, DOM0_ALIASES.as_bytes());
    archive.file("usr/bin/paceline-agent", true, DOM0_AGENT.as_bytes());
    archive.file("init", true, DOM0_INIT.as_bytes());
    Ok(archive.finish())
}

fn build_linux(parts: &Parts) -> Result<Vec<u8>> {
    let mut archive = skeleton();
    let tools = &parts.tools;
    for name in LINUX_PROGRAMS {
        tools.add(
            &mut archive,
            &format!("usr/bin/{name}"),
            &tools.program(name)?,
        )?;
    }
    add_modules(&mut archive, parts, &LINUX_MODULES)?;
    for name in ["poweroff", "reboot"] {
        // There is no init that could be asked: force it.
        let script = format!("#!/usr/bin/busybox sh\nexec /usr/bin/busybox {name} -f\n");
        archive.file(&format!("usr/sbin/{name}"), true, script.as_bytes());
    }
    archive.file("init", true, LINUX_INIT.as_bytes());
    Ok(archive.finish())
}
