//! Pages in ordinary memory.

use crate::device::Page;
use alloc::rc::Rc;
use core::{cell::Cell, ops::Range};

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
        if !self.reserve(1) {
            return None;
        }
        let memory: Rc<[u8]> = Rc::new([0; PAGE_BYTES]);
        Some(SimPage {
            memory,
            token: Some(self.token()),
            len: 0,
            writer: true,
        })
    }

    /// How many pages are in use.
    pub fn live(&self) -> usize {
        self.live.get()
    }

    /// Counts `pages` as in use, if there are so many.
    pub(super) fn reserve(&self, pages: usize) -> bool {
        let live = self.live.get() + pages;
        let fits = live <= self.limit;
        if fits {
            self.live.set(live);
        }
        fits
    }

    /// Counts a page as in use, whether or not there is one.
    pub(super) fn force(&self) {
        self.live.set(self.live.get() + 1);
    }

    /// Gives back what was reserved.
    pub(super) fn unreserve(&self, pages: usize) {
        self.live.set(self.live.get() - pages);
    }

    /// Turns a reserved page into one that is counted until its last handle is dropped.
    pub(super) fn token(&self) -> Rc<Token> {
        Rc::new(Token {
            live: Rc::clone(&self.live),
        })
    }
}

/// Stands for a page in use; shared by its handles.
#[derive(Debug)]
pub(super) struct Token {
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
    memory: Rc<[u8]>,
    token: Option<Rc<Token>>,
    len: usize,
    writer: bool,
}

impl SimPage {
    /// A page of a host that holds what came in memory of another: as if it had been copied.
    pub(super) fn received(memory: Rc<[u8]>, token: Option<Rc<Token>>) -> Self {
        Self {
            len: memory.len(),
            memory,
            token,
            writer: false,
        }
    }
}

impl Clone for SimPage {
    fn clone(&self) -> Self {
        Self {
            memory: Rc::clone(&self.memory),
            token: self.token.clone(),
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
            self.len = (self.len + len).min(self.memory.len());
        }
    }
}

/// Bytes on the wire, by reference: nobody's page, so that what is under way counts for no host.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) memory: Rc<[u8]>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Part {
    /// The bytes `range` of `page`.
    pub(super) fn new(page: &SimPage, range: Range<usize>) -> Self {
        Self {
            memory: Rc::clone(&page.memory),
            start: range.start,
            end: range.end,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Joins `next` to it, if that follows in the same memory.
    pub(super) fn join(&mut self, next: &Self) -> bool {
        let follows = Rc::ptr_eq(&self.memory, &next.memory) && self.end == next.start;
        if follows {
            self.end = next.end;
        }
        follows
    }
}
