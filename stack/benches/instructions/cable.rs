//! The device: frames in buffers that are used again, from one end of a cable to the other.

use std::{cell::RefCell, collections::VecDeque, rc::Rc};

/// Frames that fit in a direction.
const FRAMES: usize = 256;
/// Room for the largest frame.
const BUFFER_BYTES: usize = 65_535 + 14;

/// What the device is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) name: &'static str,
    /// Largest IP packet.
    pub(crate) mtu_bytes: u16,
    /// Whether the stacks compute and verify checksums.
    pub(crate) checksums: bool,
    /// Whether large segments pass, though the MTU is small.
    pub(crate) segments: bool,
}

impl Wire {
    pub(crate) const ALL: [Self; 4] = [
        Self {
            name: "1500-byte packets, checksums",
            mtu_bytes: 1500,
            checksums: true,
            segments: false,
        },
        Self {
            name: "1500-byte packets",
            mtu_bytes: 1500,
            checksums: false,
            segments: false,
        },
        Self {
            name: "65535-byte packets",
            mtu_bytes: u16::MAX,
            checksums: false,
            segments: false,
        },
        Self {
            name: "1500-byte packets, segmentation",
            mtu_bytes: 1500,
            checksums: false,
            segments: true,
        },
    ];
}

/// A frame in its buffer.
#[derive(Debug)]
pub(crate) struct Frame {
    buffer: Box<[u8]>,
    len: usize,
    /// Of a large segment: the payload bytes of each.
    pub(crate) segment_bytes: Option<u16>,
}

impl Frame {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Makes it `len` bytes long, to be written.
    pub(crate) fn resize(&mut self, len: usize) -> &mut [u8] {
        self.len = len;
        &mut self.buffer[..len]
    }

    /// Adds bytes behind those there are.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        self.buffer[self.len..end].copy_from_slice(bytes);
        self.len = end;
    }
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Direction {
    waiting: VecDeque<Frame>,
    free: Vec<Frame>,
}

impl Direction {
    fn new() -> Self {
        let frame = || Frame {
            buffer: vec![0; BUFFER_BYTES].into(),
            len: 0,
            segment_bytes: None,
        };
        Self {
            waiting: VecDeque::with_capacity(FRAMES),
            free: (0..FRAMES).map(|_| frame()).collect(),
        }
    }

    /// An empty frame; none when the cable is full.
    pub(crate) fn begin(&mut self) -> Option<Frame> {
        let mut frame = self.free.pop()?;
        frame.len = 0;
        frame.segment_bytes = None;
        Some(frame)
    }

    /// Whether [`Direction::begin`] would give a frame.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    pub(crate) fn send(&mut self, frame: Frame) {
        self.waiting.push_back(frame);
    }

    pub(crate) fn receive(&mut self) -> Option<Frame> {
        self.waiting.pop_front()
    }

    /// The frame has been looked at.
    pub(crate) fn end(&mut self, frame: Frame) {
        self.free.push(frame);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// One end: what comes and what goes.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) incoming: Rc<RefCell<Direction>>,
    pub(crate) outgoing: Rc<RefCell<Direction>>,
}

/// Both ends of a cable.
pub(crate) fn cable() -> (End, End) {
    let direction = || Rc::new(RefCell::new(Direction::new()));
    let (there, back) = (direction(), direction());
    let end = |incoming: &Rc<_>, outgoing: &Rc<_>| End {
        incoming: Rc::clone(incoming),
        outgoing: Rc::clone(outgoing),
    };
    (end(&back, &there), end(&there, &back))
}
