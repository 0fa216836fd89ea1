//! The bytes an application has written and the peer has not acknowledged, in device pages.

use crate::device::{MAX_TX_SLICES, Page, Slice, SliceRef};
use alloc::collections::VecDeque;

/// What a page costs, however little of it is used.
pub(super) const PAGE_BYTES: usize = 4096;
/// Slices up to this long are copied rather than held by reference, lest a few bytes pin a page
/// and take a device slot each.
const COPY_BELOW_BYTES: usize = 256;

/// The payload of one packet.
pub(super) type Payload<'a, P> = heapless::Vec<SliceRef<'a, P>, MAX_TX_SLICES>;

/// A queue of bytes from the first unacknowledged to the last written.
///
/// Positions count bytes of the stream; the first byte ever written has position 0.
#[derive(Debug)]
pub(super) struct SendQueue<P> {
    /// Full pages and slices taken by reference, each with the position of its first byte.
    sealed: VecDeque<(u64, Slice<P>)>,
    /// The page being filled, behind all of `sealed`.
    tail: Option<Tail<P>>,
    start: u64,
    end: u64,
}

#[derive(Debug)]
struct Tail<P> {
    page: P,
    /// Where in the page the queue's bytes start.
    offset: usize,
    /// Position of the byte at `offset`.
    position: u64,
}

impl<P: Page> SendQueue<P> {
    pub(super) fn new() -> Self {
        Self {
            sealed: VecDeque::new(),
            tail: None,
            start: 0,
            end: 0,
        }
    }

    /// Position of the first byte held.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Position behind the last byte.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes held.
    pub(super) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Bytes of the pages held, used or not.
    pub(super) fn truesize(&self) -> usize {
        (self.sealed.len() + usize::from(self.tail.is_some())) * PAGE_BYTES
    }

    /// Copies up to `limit` bytes of `data` in; fewer when no page is to be had.
    pub(super) fn append(
        &mut self,
        data: &[u8],
        limit: usize,
        alloc: &mut dyn FnMut() -> Option<P>,
    ) -> usize {
        let mut rest = &data[..data.len().min(limit)];
        let asked = rest.len();
        while !rest.is_empty() {
            let Some(tail) = self.writable_tail(alloc) else {
                break;
            };
            let copied = tail.page.append(rest);
            if copied == 0 {
                break;
            }
            self.end += copied as u64;
            rest = &rest[copied..];
        }
        asked - rest.len()
    }

    /// Takes a slice in by reference; a short one is copied when the tail has room.
    pub(super) fn push_slice(&mut self, slice: Slice<P>) {
        let len = slice.len();
        if len == 0 {
            return;
        }
        if len <= COPY_BELOW_BYTES
            && let Some(tail) = &mut self.tail
            && tail.page.spare_mut().len() >= len
        {
            let copied = tail.page.append(slice.bytes());
            self.end += copied as u64;
            let mut rest = slice;
            rest.advance(copied);
            if rest.is_empty() {
                return;
            }
            self.seal_tail();
            self.push_sealed(rest);
            return;
        }
        self.seal_tail();
        self.push_sealed(slice);
    }

    fn push_sealed(&mut self, slice: Slice<P>) {
        let len = slice.len() as u64;
        self.sealed.push_back((self.end, slice));
        self.end += len;
    }

    /// The tail with room to write, made anew when there is none.
    fn writable_tail(&mut self, alloc: &mut dyn FnMut() -> Option<P>) -> Option<&mut Tail<P>> {
        if self
            .tail
            .as_mut()
            .is_none_or(|tail| tail.page.spare_mut().is_empty())
        {
            let page = alloc()?;
            self.seal_tail();
            self.tail = Some(Tail {
                offset: page.bytes().len(),
                page,
                position: self.end,
            });
        }
        self.tail.as_mut()
    }

    fn seal_tail(&mut self) {
        let Some(Tail {
            page,
            offset,
            position,
        }) = self.tail.take()
        else {
            return;
        };
        let end = page.bytes().len();
        if offset < end {
            self.sealed
                .push_back((position, Slice::new(page, offset..end)));
        }
    }

    /// Lets go of everything before `position`; pages go back as their last byte does.
    pub(super) fn release_to(&mut self, position: u64) {
        let position = position.clamp(self.start, self.end);
        self.start = position;
        while let Some((at, slice)) = self.sealed.front_mut() {
            let end = *at + slice.len() as u64;
            if end > position {
                if position > *at {
                    slice.advance((position - *at) as usize);
                    *at = position;
                }
                return;
            }
            self.sealed.pop_front();
        }
        if let Some(tail) = &mut self.tail {
            if position > tail.position {
                tail.offset += (position - tail.position) as usize;
                tail.position = position;
            }
            // An idle connection holds a page only while there is room in it for the next write.
            if tail.position == self.end && tail.page.spare_mut().is_empty() {
                self.tail = None;
            }
        }
    }

    /// Lists the slices with up to `max_bytes` bytes from `position` on, at most `max_slices`;
    /// returns how many bytes that are.
    pub(super) fn gather<'a>(
        &'a self,
        position: u64,
        max_bytes: usize,
        max_slices: usize,
        payload: &mut Payload<'a, P>,
    ) -> usize {
        let mut left = max_bytes;
        let mut skip = position;
        let first = self
            .sealed
            .partition_point(|(at, slice)| at + slice.len() as u64 <= position);
        for (at, slice) in self.sealed.range(first..) {
            if left == 0 || payload.len() >= max_slices {
                return max_bytes - left;
            }
            let from = skip.saturating_sub(*at) as usize;
            let part = slice.borrow().slice(from..from.saturating_add(left));
            skip = 0;
            left -= part.len();
            if payload.push(part).is_err() {
                return max_bytes - left - part.len();
            }
        }
        if let Some(tail) = &self.tail
            && left > 0
            && payload.len() < max_slices
        {
            let from = tail.offset + position.saturating_sub(tail.position) as usize;
            let part = SliceRef::new(&tail.page, from..from.saturating_add(left));
            if !part.is_empty() && payload.push(part).is_ok() {
                left -= part.len();
            }
        }
        max_bytes - left
    }

    /// Lets go of everything, the page in the making too.
    pub(super) fn clear(&mut self) {
        self.sealed = VecDeque::new();
        self.tail = None;
        self.start = self.end;
    }
}

#[cfg(test)]
mod tests;
