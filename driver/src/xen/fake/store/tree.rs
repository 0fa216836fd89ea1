//! The tree of entries. Paths are absolute; the root is the empty path.

use super::Change;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

#[derive(Clone, Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Vec<u8>>);

impl Tree {
    pub(super) fn read(&self, path: &str) -> Option<&[u8]> {
        if path.is_empty() {
            return Some(&[]);
        }
        self.0.get(path).map(Vec::as_slice)
    }

    pub(super) fn list(&self, path: &str) -> Vec<String> {
        self.0
            .keys()
            .filter_map(|key| key.strip_prefix(path)?.strip_prefix('/'))
            .filter(|name| !name.contains('/'))
            .map(ToString::to_string)
            .collect()
    }

    pub(super) fn write(&mut self, path: &str, value: &[u8]) {
        for (end, _) in path.match_indices('/').skip(1) {
            self.0.entry(path[..end].into()).or_default();
        }
        self.0.insert(path.into(), value.into());
    }

    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Write(path, value) => self.write(path, value),
            Change::Remove(path) => self.0.retain(|key, _| !covers(path, key)),
        }
    }
}

/// Whether `path` is `root` or lies below it.
pub(super) fn covers(root: &str, path: &str) -> bool {
    path.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
