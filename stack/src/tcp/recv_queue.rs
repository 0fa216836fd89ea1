//! Bytes received in order and not yet read, by reference to the pages they came in.

use crate::device::{Page, Slice};
use alloc::{collections::VecDeque, vec::Vec};

use super::send_queue::PAGE_BYTES;

/// A run of bytes as the application reads them.
#[derive(Debug)]
pub(crate) enum Chunk<P> {
    /// In the page they came in.
    Page(Slice<P>),
    /// Gathered from segments too small to be worth a page each; read from `start` on.
    Gathered {
        /// The bytes.
        bytes: Vec<u8>,
        /// How many of them have been read.
        start: usize,
    },
}

impl<P: Page> Chunk<P> {
    /// The bytes not yet read.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Page(slice) => slice.bytes(),
            Self::Gathered { bytes, start } => &bytes[*start..],
        }
    }

    /// `first` and `second`, one behind the other, in memory of their own.
    pub(super) fn gathered(first: &[u8], second: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(PAGE_BYTES);
        bytes.extend_from_slice(first);
        bytes.extend_from_slice(second);
        Self::Gathered { bytes, start: 0 }
    }

    /// Whether `len` bytes more should be copied to these rather than have a page: full segments
    /// are never copied.
    pub(super) fn takes(&self, len: usize) -> bool {
        let together = self.bytes().len() + len;
        match self {
            Self::Page(_) => together <= PAGE_BYTES / 2,
            Self::Gathered { .. } => together <= PAGE_BYTES && len <= PAGE_BYTES / 4,
        }
    }

    /// Copies bytes to the end.
    pub(super) fn append(&mut self, more: &[u8]) {
        match self {
            Self::Page(slice) => *self = Self::gathered(slice.bytes(), more),
            Self::Gathered { bytes, start } => {
                bytes.drain(..*start);
                *start = 0;
                bytes.extend_from_slice(more);
            }
        }
    }

    /// Marks the first `len` bytes read.
    pub(crate) fn advance(&mut self, len: usize) {
        match self {
            Self::Page(slice) => slice.advance(len),
            Self::Gathered { bytes, start } => *start = (*start + len).min(bytes.len()),
        }
    }
}

/// The queue between input and the application.
#[derive(Debug)]
pub(super) struct RecvQueue<P> {
    chunks: VecDeque<Chunk<P>>,
    len: usize,
}

impl<P: Page> RecvQueue<P> {
    pub(super) fn new() -> Self {
        Self {
            chunks: VecDeque::new(),
            len: 0,
        }
    }

    /// Bytes held.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the memory held, used or not.
    pub(super) fn truesize(&self) -> usize {
        self.chunks.len() * PAGE_BYTES
    }

    /// Adds bytes at the end: by reference, unless pages are so badly used that memory would go
    /// over `max_truesize`; then by copying into gathered chunks.
    pub(super) fn push(&mut self, slice: Slice<P>, max_truesize: usize) {
        let len = slice.len();
        if len == 0 {
            return;
        }
        self.len += len;
        if self.truesize() < max_truesize || len > PAGE_BYTES / 2 {
            self.chunks.push_back(Chunk::Page(slice));
            return;
        }
        if let Some(Chunk::Gathered { bytes, .. }) = self.chunks.back_mut()
            && bytes.len() + len <= PAGE_BYTES
        {
            bytes.extend_from_slice(slice.bytes());
            return;
        }
        self.chunks.push_back(Chunk::gathered(slice.bytes(), &[]));
    }

    /// The same for bytes that waited behind a gap.
    pub(super) fn push_chunk(&mut self, chunk: Chunk<P>, max_truesize: usize) {
        match chunk {
            Chunk::Page(slice) => self.push(slice, max_truesize),
            Chunk::Gathered { ref bytes, start } => {
                self.len += bytes.len() - start;
                self.chunks.push_back(chunk);
            }
        }
    }

    /// Takes the first run of bytes out.
    pub(super) fn pop(&mut self) -> Option<Chunk<P>> {
        let chunk = self.chunks.pop_front()?;
        self.len -= chunk.bytes().len();
        Some(chunk)
    }

    /// Copies bytes out, as many as there are and `out` takes.
    pub(super) fn read(&mut self, out: &mut [u8]) -> usize {
        let mut done = 0;
        while done < out.len()
            && let Some(chunk) = self.chunks.front_mut()
        {
            let bytes = chunk.bytes();
            let len = bytes.len().min(out.len() - done);
            out[done..done + len].copy_from_slice(&bytes[..len]);
            done += len;
            if len == bytes.len() {
                self.chunks.pop_front();
            } else {
                chunk.advance(len);
            }
        }
        self.len -= done;
        done
    }

    /// Lets go of everything.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests;
