//! A writer for the cpio `newc` format, the one the kernel unpacks as an initramfs
//! (Linux `Documentation/driver-api/early-userspace/buffer-format.rst`).

use std::collections::BTreeSet;

const MAGIC: &str = "070701";
const TRAILER: &str = "TRAILER!!!";
/// The kernel wants each archive that follows another to start at a multiple of four; a larger
/// block keeps concatenated archives readable by cpio as well.
const BLOCK_BYTES: usize = 512;

const TYPE_FOLDER: u32 = 0o040_000;
const TYPE_DEVICE: u32 = 0o020_000;
const TYPE_FILE: u32 = 0o100_000;
const TYPE_LINK: u32 = 0o120_000;

/// An archive under construction. Parent folders are made on demand, everything belongs to root
/// and has no time stamp, so the same inputs give the same bytes.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    next_inode: u32,
    paths: BTreeSet<String>,
}

impl Archive {
    /// An archive without entries.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Whether `path` is in the archive.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Adds a folder and those above it.
    pub(crate) fn folder(&mut self, path: &str) {
        if self.contains(path) {
            return;
        }
        self.parents(path);
        self.entry(path, TYPE_FOLDER | 0o755, (0, 0), &[]);
    }

    /// Adds a regular file, executable or not.
    pub(crate) fn file(&mut self, path: &str, executable: bool, content: &[u8]) {
        self.parents(path);
        self.entry(
            path,
            TYPE_FILE | if executable { 0o755 } else { 0o644 },
            (0, 0),
            content,
        );
    }

    /// Adds a symbolic link to `target`.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.parents(path);
        self.entry(path, TYPE_LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// Adds a character device.
    pub(crate) fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.parents(path);
        self.entry(path, TYPE_DEVICE | 0o600, (major, minor), &[]);
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.next_inode = 0;
        self.header(TRAILER, 0, (0, 0), 0);
        self.pad(BLOCK_BYTES);
        self.bytes
    }

    fn parents(&mut self, path: &str) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.folder(parent);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        if !self.paths.insert(path.to_owned()) {
            return;
        }
        self.next_inode += 1;
        self.header(path, mode, device, content.len());
        self.bytes.extend_from_slice(content);
        self.pad(4);
    }

    fn header(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), content_len: usize) {
        let links = if mode & TYPE_FOLDER == TYPE_FOLDER && mode & TYPE_FILE == 0 {
            2
        } else {
            1
        };
        let fields: [u32; 13] = [
            self.next_inode,
            mode,
            0,
            0,
            links,
            0,
            u32::try_from(content_len).unwrap_or(u32::MAX),
            0,
            0,
            major,
            minor,
            u32::try_from(path.len() + 1).unwrap_or(u32::MAX),
            0,
        ];
        self.bytes.extend_from_slice(MAGIC.as_bytes());
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad(4);
    }

    fn pad(&mut self, multiple: usize) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(multiple), 0);
    }
}

#[cfg(test)]
mod tests;
