//! A page in ordinary memory for the unit tests of this module.

use crate::device::{Page, Slice};
use alloc::{rc::Rc, vec, vec::Vec};

/// A page whose clones are snapshots.
#[derive(Debug)]
pub(crate) struct TestPage {
    bytes: Rc<Vec<u8>>,
    len: usize,
}

impl TestPage {
    pub(crate) fn new() -> Self {
        Self::with_capacity(4096)
    }

    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: Rc::new(vec![0; capacity]),
            len: 0,
        }
    }

    /// A slice of a fresh page with these bytes.
    pub(crate) fn slice(bytes: &[u8]) -> Slice<Self> {
        let mut page = Self::new();
        page.append(bytes);
        Slice::whole(page)
    }
}

impl Clone for TestPage {
    fn clone(&self) -> Self {
        Self {
            bytes: Rc::new(self.bytes[..self.len].to_vec()),
            len: self.len,
        }
    }
}

impl Page for TestPage {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn spare_mut(&mut self) -> &mut [u8] {
        let len = self.len;
        match Rc::get_mut(&mut self.bytes) {
            Some(bytes) => &mut bytes[len..],
            None => &mut [],
        }
    }

    fn commit(&mut self, len: usize) {
        self.len = (self.len + len).min(self.bytes.len());
    }
}
