//! Kernel modules in the order they must be loaded.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{elf, rootfs::RootFs, workspace::read};

/// A module ready to be loaded.
#[derive(Debug)]
pub(crate) struct Module {
    /// Its name with underscores.
    pub(crate) name: String,
    /// The uncompressed object.
    pub(crate) bytes: Vec<u8>,
}

/// The modules of one kernel.
#[derive(Debug)]
pub(crate) struct ModuleFolder {
    files: BTreeMap<String, PathBuf>,
    builtin: String,
}

impl ModuleFolder {
    /// Indexes `/lib/modules/<version>`.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        index(&folder.join("kernel"), &mut files)
            .with_context(|| format!("cannot read the modules in {}", folder.display()))?;
        let builtin = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        Ok(Self { files, builtin })
    }

    /// The named modules with all they depend on, each after its dependencies.
    pub(crate) fn in_load_order(&self, names: &[&str], tools: &RootFs) -> Result<Vec<Module>> {
        let mut order = Vec::new();
        for name in names {
            self.visit(name, tools, &mut order, 0)?;
        }
        Ok(order)
    }

    fn visit(
        &self,
        name: &str,
        tools: &RootFs,
        order: &mut Vec<Module>,
        depth: usize,
    ) -> Result<()> {
        const MAX_DEPTH: usize = 16;
        let name = name.replace('-', "_");
        if order.iter().any(|module| module.name == name) {
            return Ok(());
        }
        if depth > MAX_DEPTH {
            bail!("modules depend on each other in a circle at {name}");
        }
        let Some(file) = self.files.get(&name) else {
            if self.is_builtin(&name) {
                return Ok(());
            }
            bail!("the kernel has no module {name}");
        };
        let bytes = uncompressed(file, tools)?;
        let depends =
            elf::module_depends(&bytes).with_context(|| format!("in {}", file.display()))?;
        for other in depends {
            self.visit(&other, tools, order, depth + 1)?;
        }
        order.push(Module { name, bytes });
        Ok(())
    }

    fn is_builtin(&self, name: &str) -> bool {
        self.builtin
            .lines()
            .any(|line| module_name(line).is_some_and(|found| found == name))
    }
}

fn index(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            index(&entry.path(), files)?;
        } else if let Some(name) = module_name(&entry.file_name().to_string_lossy()) {
            files.insert(name, entry.path());
        }
    }
    Ok(())
}

/// The module's name from its file's, whatever the compression.
fn module_name(file: &str) -> Option<String> {
    let base = file.rsplit('/').next()?;
    let (name, rest) = base.split_once(".ko")?;
    matches!(rest, "" | ".xz" | ".gz" | ".zst").then(|| name.replace('-', "_"))
}

fn uncompressed(file: &Path, tools: &RootFs) -> Result<Vec<u8>> {
    let path = file.to_str().context("a module's path is not UTF-8")?;
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => tools.busybox(&["xzcat", path]),
        Some("gz") => tools.busybox(&["zcat", path]),
        Some("zst") => crate::process::output(Path::new("zstdcat"), &[path]),
        _ => read(file),
    }
}

#[cfg(test)]
mod tests;
