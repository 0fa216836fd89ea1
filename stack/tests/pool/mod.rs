//! Pages that are allocated once and for all, for devices beside which allocations or instructions
//! are counted.

use paceline_stack::device::Page;
use std::{cell::RefCell, rc::Rc};

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;

type Memory = Rc<[u8; PAGE_BYTES]>;

/// The pages that nobody has.
pub(crate) type Pool = Rc<RefCell<Vec<Memory>>>;

/// `pages` pages.
pub(crate) fn pool(pages: usize) -> Pool {
    let memory = (0..pages).map(|_| Rc::new([0; PAGE_BYTES])).collect();
    Rc::new(RefCell::new(memory))
}

/// A page that goes back to its pool.
#[derive(Debug)]
pub(crate) struct PoolPage {
    memory: Memory,
    len: usize,
    writer: bool,
    pool: Pool,
}

impl PoolPage {
    /// One that nobody has; none when all are in use.
    pub(crate) fn alloc(pool: &Pool) -> Option<Self> {
        let memory = pool.borrow_mut().pop()?;
        Some(Self {
            memory,
            len: 0,
            writer: true,
            pool: Rc::clone(pool),
        })
    }
}

impl Clone for PoolPage {
    fn clone(&self) -> Self {
        Self {
            memory: Rc::clone(&self.memory),
            len: self.len,
            writer: false,
            pool: Rc::clone(&self.pool),
        }
    }
}

impl Drop for PoolPage {
    fn drop(&mut self) {
        if Rc::strong_count(&self.memory) == 1 {
            self.pool.borrow_mut().push(Rc::clone(&self.memory));
        }
    }
}

impl Page for PoolPage {
    fn bytes(&self) -> &[u8] {
        &self.memory[..self.len]
    }

    fn spare_mut(&mut self) -> &mut [u8] {
        if !self.writer {
            return &mut [];
        }
        if Rc::get_mut(&mut self.memory).is_none() {
            // Somebody reads it: go on in a copy.
            let Some(mut memory) = self.pool.borrow_mut().pop() else {
                return &mut [];
            };
            Rc::get_mut(&mut memory).expect("it was free")[..self.len]
                .copy_from_slice(&self.memory[..self.len]);
            self.memory = memory;
        }
        let memory = Rc::get_mut(&mut self.memory).expect("it is ours alone");
        &mut memory[self.len..]
    }

    fn commit(&mut self, len: usize) {
        if self.writer {
            self.len = (self.len + len).min(PAGE_BYTES);
        }
    }
}
