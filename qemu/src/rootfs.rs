//! Finding programs and libraries in a tree of unpacked packages, and copying a program with all
//! the libraries it needs into an archive.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{cpio::Archive, elf, process::output, workspace::read};

const PROGRAM_FOLDERS: [&str; 4] = ["usr/bin", "usr/sbin", "bin", "sbin"];
const LIBRARY_FOLDERS: [&str; 5] = [
    "usr/lib/x86_64-linux-gnu",
    "lib/x86_64-linux-gnu",
    "usr/lib64",
    "lib64",
    "usr/lib",
];
/// Where the dynamic loader looks in the archive without any configuration.
const ARCHIVE_LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LOADER: &str = "ld-linux-x86-64.so.2";

/// A tree that holds programs and their libraries.
#[derive(Debug)]
pub(crate) struct RootFs {
    root: PathBuf,
}

impl RootFs {
    /// The tree below `root`.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The tree's root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The file of a program.
    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        self.find(&PROGRAM_FOLDERS, name)
            .with_context(|| format!("no program `{name}` below {}", self.root.display()))
    }

    /// The folder with Xen's private programs, relative to the root: `usr/lib/xen-4.17/bin`.
    pub(crate) fn xen_programs(&self) -> Result<String> {
        for folder in ["usr/lib", "usr/libexec", "usr/local/lib"] {
            let Ok(entries) = fs::read_dir(self.root.join(folder)) else {
                continue;
            };
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with("xen") && entry.path().join("bin/xenstored").is_file() {
                    return Ok(format!("{folder}/{name}/bin"));
                }
            }
        }
        bail!(
            "no xenstored below {}/usr/lib/xen*/bin",
            self.root.display()
        )
    }

    /// Runs the tree's busybox on the host, as `busybox <args>`.
    pub(crate) fn busybox(&self, args: &[&str]) -> Result<Vec<u8>> {
        output(&self.program("busybox")?, args)
    }

    /// Adds the program in `file` as `path` together with the libraries it needs.
    pub(crate) fn add(&self, archive: &mut Archive, path: &str, file: &Path) -> Result<()> {
        let bytes = read(file)?;
        self.add_libraries(archive, &bytes)
            .with_context(|| format!("libraries of {}", file.display()))?;
        archive.file(path, true, &bytes);
        Ok(())
    }

    fn add_libraries(&self, archive: &mut Archive, bytes: &[u8]) -> Result<()> {
        let mut pending = elf::needed(bytes)?;
        while let Some(name) = pending.pop() {
            let path = format!("{ARCHIVE_LIBRARIES}/{name}");
            if archive.contains(&path) {
                continue;
            }
            let file = self
                .find(&LIBRARY_FOLDERS, &name)
                .with_context(|| format!("no library `{name}` below {}", self.root.display()))?;
            let bytes = read(&file)?;
            pending.extend(elf::needed(&bytes)?);
            archive.file(&path, true, &bytes);
            if name == LOADER {
                archive.file(&format!("usr/lib64/{LOADER}"), true, &bytes);
            }
        }
        // The loader is named by the program itself, and only some libraries need it by name.
        if !elf::needed(bytes)?.is_empty() && !archive.contains(&format!("usr/lib64/{LOADER}")) {
            let file = self
                .find(&LIBRARY_FOLDERS, LOADER)
                .with_context(|| format!("no {LOADER} below {}", self.root.display()))?;
            archive.file(&format!("usr/lib64/{LOADER}"), true, &read(&file)?);
        }
        Ok(())
    }

    /// Follows links inside the tree: an absolute target is meant from the tree's root.
    fn find(&self, folders: &[&str], name: &str) -> Option<PathBuf> {
        folders
            .iter()
            .find_map(|folder| self.resolve(&self.root.join(folder).join(name)))
    }

    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        const MAX_LINKS: usize = 8;
        let mut path = path.to_path_buf();
        for _ in 0..MAX_LINKS {
            let metadata = fs::symlink_metadata(&path).ok()?;
            if metadata.is_file() {
                return Some(path);
            }
            if !metadata.is_symlink() {
                return None;
            }
            let target = fs::read_link(&path).ok()?;
            path = match target.strip_prefix("/") {
                Ok(inside) => self.root.join(inside),
                Err(_) => path.parent()?.join(target),
            };
        }
        None
    }
}

#[cfg(test)]
mod tests;
