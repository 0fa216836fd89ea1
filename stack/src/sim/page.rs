//! Pages in ordinary memory.

use crate::device::Page;
use alloc::rc::Rc;
use core::cell::Cell;

/// Size of a page in bytes.
pub const PAGE_BYTES: usize = 4096;

/// A pool of pages that counts how many are in use.
#[derive(Clone, Debug)]
pub struct Pool {
    live: Rc<Cell<usize>>,
    limit: usize,
}

impl Pool {
    /// A pool of `limit` pages.
    pub fn new(limit: usize) -> Self {
        Self {
            live: Rc::new(Cell::new(0)),
            limit,
        }
    }

    /// A page, unless all are in use.
    pub fn alloc(&self) -> Option<SimPage> {
        if self.live.get() >= self.limit {
            return None;
        }
        self.live.set(self.live.get() + 1);
        Some(SimPage {
            memory: Rc::new([0; PAGE_BYTES]),
            token: Rc::new(Token {
                live: Rc::clone(&self.live),
            }),
            len: 0,
            writer: true,
        })
    }

    /// How many pages are in use.
    pub fn live(&self) -> usize {
        self.live.get()
    }
}

/// Stands for a page in use; shared by its handles.
#[derive(Debug)]
struct Token {
    live: Rc<Cell<usize>>,
}

impl Drop for Token {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
    }
}

/// A page. Its writer copies it when it writes on while others read: the meaning of
/// [`Page`] without sharing memory.
#[derive(Debug)]
pub struct SimPage {
    memory: Rc<[u8; PAGE_BYTES]>,
    token: Rc<Token>,
    len: usize,
    writer: bool,
}

impl Clone for SimPage {
    fn clone(&self) -> Self {
        Self {
            memory: Rc::clone(&self.memory),
            token: Rc::clone(&self.token),
            len: self.len,
            writer: false,
        }
    }
}

impl Page for SimPage {
    fn bytes(&self) -> &[u8] {
        &self.memory[..self.len]
    }

    fn spare_mut(&mut self) -> &mut [u8] {
        if !self.writer {
            return &mut [];
        }
        &mut Rc::make_mut(&mut self.memory)[self.len..]
    }

    fn commit(&mut self, len: usize) {
        if self.writer {
            self.len = (self.len + len).min(PAGE_BYTES);
        }
    }
}
