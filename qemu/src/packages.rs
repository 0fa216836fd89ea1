//! Debian's own Xen, dom0 kernel and tools, fetched and unpacked without root.
//!
//! apt runs on state of its own inside the rig's folder but with the system's sources and keys,
//! so it needs no privileges, changes nothing on the host and still checks every signature and
//! hash. What has once been unpacked is used offline from then on.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    os_release::Release,
    process::{checked, find},
    progress::phase,
    workspace::write_atomically,
};

/// Bumped when the list of packages changes, so that older trees are fetched anew.
const LIST_VERSION: u32 = 1;
const STAMP: &str = "complete";

/// A complete tree of unpacked packages.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The tree's root.
    pub(crate) root: PathBuf,
    /// What it was unpacked from; changes when the packages do.
    pub(crate) identity: String,
}

/// The release's tree below `rig`, fetched when it is not there yet.
pub(crate) fn tree(rig: &Path, release: Release) -> Result<Tree> {
    let folder = rig.join(release.folder());
    let root = folder.join("root");
    let stamp = folder.join(STAMP);
    let version = format!("list {LIST_VERSION}\n");
    if let Ok(identity) = fs::read_to_string(&stamp)
        && identity.starts_with(&version)
        && root.is_dir()
    {
        return Ok(Tree { root, identity });
    }
    fetch(&folder, release, &root, &stamp, &version)
}

fn fetch(
    folder: &Path,
    release: Release,
    root: &Path,
    stamp: &Path,
    version: &str,
) -> Result<Tree> {
    for tool in ["apt-get", "apt-cache", "dpkg", "sha256sum"] {
        if find(&[tool]).is_none() {
            bail!("{tool} is not installed: expected Debian's package tools");
        }
    }
    let apt = Apt::prepare(folder)?;
    let names = phase("packages: resolve", || {
        apt.update()?;
        apt.closure(release)
    })?;
    let debs = folder.join("debs");
    fs::create_dir_all(&debs)?;
    let lock = phase("packages: download and check", || {
        apt.download(&names, &debs)
    })?;
    phase("packages: unpack", || {
        let partial = folder.join("root.partial");
        remove_tree(&partial)?;
        remove_tree(root)?;
        fs::create_dir_all(&partial)?;
        for file in lock.iter().map(|entry| debs.join(&entry.file)) {
            checked(Command::new("dpkg").arg("-x").arg(&file).arg(&partial))?;
        }
        fs::rename(&partial, root)?;
        Ok(())
    })?;
    let list: Vec<_> = lock
        .iter()
        .map(|entry| format!("{}  {}", entry.sha256, entry.file))
        .collect();
    let identity = format!("{version}{}\n", list.join("\n"));
    write_atomically(stamp, identity.as_bytes())?;
    // The tree is all that is used from here on.
    remove_tree(&debs)?;
    Ok(Tree {
        root: root.to_path_buf(),
        identity,
    })
}

fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// One line of `apt-get --print-uris download`.
#[derive(Debug, Eq, PartialEq)]
struct LockEntry {
    file: String,
    sha256: String,
}

/// apt with its state in the rig's folder.
#[derive(Debug)]
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn prepare(folder: &Path) -> Result<Self> {
        let state = folder.join("apt");
        let (lists, cache, status) = (
            state.join("lists"),
            state.join("cache"),
            state.join("status"),
        );
        fs::create_dir_all(lists.join("partial"))?;
        fs::create_dir_all(cache.join("archives/partial"))?;
        fs::write(&status, "")?;
        let options = [
            format!("Dir::State={}", state.display()),
            format!("Dir::State::lists={}", lists.display()),
            format!("Dir::State::status={}", status.display()),
            format!("Dir::Cache={}", cache.display()),
            "APT::Architecture=amd64".to_owned(),
            // As root apt would change to a user who cannot write here.
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::Retries=3".to_owned(),
        ];
        Ok(Self {
            options: options
                .into_iter()
                .flat_map(|text| ["-o".to_owned(), text])
                .collect(),
        })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // Their output is parsed.
        command.env("LC_ALL", "C").args(&self.options);
        command
    }

    fn update(&self) -> Result<()> {
        // A third party's broken source makes apt fail although Debian's own lists are there:
        // whether they are shows when the packages are resolved.
        match checked(self.command("apt-get").arg("update")) {
            Ok(_) => Ok(()),
            Err(error) if self.knows("linux-image-amd64") => {
                eprintln!("apt-get update: {error:#}");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn knows(&self, package: &str) -> bool {
        self.depends(&[package.to_owned()])
            .is_ok_and(|names| !names.is_empty())
    }

    /// The packages the rig uses with every library package they depend on. Interpreters are
    /// left out: nothing that dom0 runs needs one.
    fn closure(&self, release: Release) -> Result<Vec<String>> {
        let meta = "linux-image-amd64";
        let kernel = self
            .depends(&[meta.to_owned()])?
            .into_iter()
            .find(|name| name.starts_with("linux-image-"))
            .with_context(|| {
                format!("{meta} depends on no kernel: is Debian's main archive in apt's sources?")
            })?;
        let xen = release.xen();
        let mut names = vec![
            kernel,
            format!("xen-hypervisor-{xen}-amd64"),
            format!("xen-utils-{xen}"),
        ];
        names.extend(
            [
                "busybox-static",
                "dash",
                "iperf",
                "iperf3",
                "iproute2",
                "iputils-ping",
                "libc6",
                "tcpdump",
                "xen-utils-common",
                "xenstore-utils",
            ]
            .map(str::to_owned),
        );
        let mut seen: BTreeSet<String> = names.iter().cloned().collect();
        let mut frontier = names;
        while !frontier.is_empty() {
            let next = self.depends(&frontier)?;
            frontier = next
                .into_iter()
                .filter(|name| is_library(name) && seen.insert(name.clone()))
                .collect();
        }
        Ok(seen.into_iter().collect())
    }

    fn depends(&self, packages: &[String]) -> Result<Vec<String>> {
        let mut command = self.command("apt-cache");
        command.args([
            "depends",
            "--no-recommends",
            "--no-suggests",
            "--no-conflicts",
            "--no-breaks",
            "--no-replaces",
            "--no-enhances",
        ]);
        let text = checked(command.args(packages))?;
        Ok(parse_depends(&String::from_utf8_lossy(&text)))
    }

    /// Downloads into `debs`, which may hold some of the files already, and checks each against
    /// the hash in the signed index.
    fn download(&self, names: &[String], debs: &Path) -> Result<Vec<LockEntry>> {
        let nowhere = debs.join("none");
        fs::create_dir_all(&nowhere)?;
        let uris = checked(
            self.command("apt-get")
                .args(["--print-uris", "download"])
                .args(names)
                .current_dir(&nowhere),
        )?;
        fs::remove_dir(&nowhere)?;
        let lock = parse_uris(&String::from_utf8_lossy(&uris))?;
        if lock.len() != names.len() {
            bail!(
                "apt offers {} files for {} packages: {names:?}",
                lock.len(),
                names.len()
            );
        }
        checked(
            self.command("apt-get")
                .args(["-qq", "download"])
                .args(names)
                .current_dir(debs),
        )?;
        let sums: Vec<_> = lock
            .iter()
            .map(|entry| format!("{}  {}\n", entry.sha256, entry.file))
            .collect();
        fs::write(debs.join("SHA256SUMS"), sums.concat())?;
        checked(
            Command::new("sha256sum")
                .args(["--check", "--quiet", "--strict", "SHA256SUMS"])
                .current_dir(debs),
        )?;
        Ok(lock)
    }
}

fn is_library(name: &str) -> bool {
    let interpreter = name.starts_with("libperl") || name.starts_with("libpython");
    (name.starts_with("lib") || name == "zlib1g") && !interpreter
}

/// The names on the `Depends:` and `PreDepends:` lines of `apt-cache depends`.
fn parse_depends(text: &str) -> Vec<String> {
    let mut names: Vec<_> = text
        .lines()
        .map(|line| line.trim_start().trim_start_matches('|'))
        .filter_map(|line| {
            line.strip_prefix("Depends: ")
                .or_else(|| line.strip_prefix("PreDepends: "))
        })
        // Angle brackets mark virtual packages.
        .filter(|name| !name.starts_with('<'))
        .map(|name| name.trim().split(':').next().unwrap_or_default().to_owned())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn parse_uris(text: &str) -> Result<Vec<LockEntry>> {
    text.lines()
        .filter(|line| line.starts_with('\''))
        .map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let [_, file, _, hash] = fields[..] else {
                bail!("expected `'uri' file size SHA256:hash` of apt, got `{line}`");
            };
            let sha256 = hash
                .strip_prefix("SHA256:")
                .with_context(|| format!("expected a SHA256 hash of apt, got `{line}`"))?;
            Ok(LockEntry {
                file: file.to_owned(),
                sha256: sha256.to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
