//! Where things lie: the checkout, cargo's target folder, and the rig's own folder in it.

use std::{
    env,
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

/// The checkout the rig was built from.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Finds the checkout by this crate's own manifest.
    pub(crate) fn find() -> Result<Self> {
        let manifest = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest
            .parent()
            .context("the qemu crate lies in no workspace")?
            .to_path_buf();
        if !root.join("Cargo.toml").is_file() {
            bail!(
                "{} holds no Cargo.toml: expected the Paceline checkout; run `cargo qemu` inside it",
                root.display()
            );
        }
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => env::current_dir()?.join(folder),
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// The checkout's root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's target folder.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The rig's own folder, made on first use.
    pub(crate) fn rig(&self) -> Result<PathBuf> {
        let rig = self.target.join("qemu");
        fs::create_dir_all(&rig).with_context(|| format!("cannot create {}", rig.display()))?;
        Ok(rig)
    }

    /// Keeps other rigs out of the same folder for as long as the result lives: they would
    /// overwrite each other's boot images and logs.
    pub(crate) fn lock(&self) -> Result<File> {
        fs::create_dir_all(&self.target)
            .with_context(|| format!("cannot create {}", self.target.display()))?;
        let path = self.target.join("qemu.lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => bail!(
                "another `cargo qemu` is at work in {}: wait for its end, or set CARGO_TARGET_DIR \
                 to another folder",
                self.target.display()
            ),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
            }
        }
    }

    /// Removes the rig's folder.
    pub(crate) fn clean(&self) -> Result<()> {
        let rig = self.target.join("qemu");
        match fs::remove_dir_all(&rig) {
            Ok(()) => println!("removed {}", rig.display()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                println!("nothing to remove: {} does not exist", rig.display());
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot remove {}", rig.display()));
            }
        }
        Ok(())
    }
}

/// Writes `bytes` so that `path` holds either all of them or what it held before.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes).with_context(|| format!("cannot write {}", partial.display()))?;
    fs::rename(&partial, path).with_context(|| format!("cannot rename to {}", path.display()))
}

/// Reads a file, naming it in the error.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests;
