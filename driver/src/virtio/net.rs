//! The NIC: frames through buffers of its own.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use virtio_drivers::device::net::VirtIONetRaw;
use virtio_drivers::transport::Transport;
use virtio_drivers::{Error, Hal};

/// Descriptors of each queue.
const QUEUE_SIZE: usize = 256;

/// Bytes of a buffer: the virtio header and a frame of the standard MTU, VLAN tag included.
const BUFFER_BYTES: usize = 2048;

/// Largest frame.
pub const MAX_FRAME_BYTES: usize = 1514;

/// Bytes that the transmit queue has room for, about, in frames of the largest size.
pub const TX_RING_BYTES: u32 = (QUEUE_SIZE * MAX_FRAME_BYTES) as u32;

type Buffer = Box<[u8; BUFFER_BYTES]>;

/// What is kept of a queue's buffers: those that the device has by their token, and the others.
struct Buffers<T> {
    in_device: Box<[Option<(Buffer, T)>; QUEUE_SIZE]>,
    free: Vec<Buffer>,
}

impl<T> Buffers<T> {
    fn new() -> Self {
        Self {
            in_device: Box::new([const { None }; QUEUE_SIZE]),
            free: (0..QUEUE_SIZE)
                .map(|_| Box::new([0; BUFFER_BYTES]))
                .collect(),
        }
    }
}

/// Counters since the device was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames refused because the queue was full.
    pub tx_full: u64,
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxError {
    /// No room now; a completion will make some.
    Full,
    /// The device broke the protocol and is not used any more.
    Broken,
    /// The frame is longer than [`MAX_FRAME_BYTES`].
    TooLong,
}

/// A virtio NIC without offloads, on transport `L`. `T` is what the user wants back when a frame
/// was sent.
pub struct VirtioNet<H: Hal, L: Transport, T> {
    raw: VirtIONetRaw<H, L, QUEUE_SIZE>,
    rx: Buffers<()>,
    /// With each buffer, how much of it is in use.
    tx: Buffers<(usize, T)>,
    statistics: Statistics,
    broken: bool,
}

impl<H: Hal, L: Transport, T> VirtioNet<H, L, T> {
    /// Brings the device up, with all receive buffers posted.
    pub fn new(transport: L) -> Result<Self, Error> {
        let mut net = Self {
            raw: VirtIONetRaw::new(transport)?,
            rx: Buffers::new(),
            tx: Buffers::new(),
            statistics: Statistics::default(),
            broken: false,
        };
        net.refill();
        Ok(net)
    }

    /// Its Ethernet address.
    pub fn mac(&self) -> [u8; 6] {
        self.raw.mac_address()
    }

    /// Whether the device is in use: it has not broken the protocol.
    pub fn is_up(&self) -> bool {
        !self.broken
    }

    /// The counters.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Hands the next received frame to `take`; none when there is no frame.
    pub fn receive<R>(&mut self, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if self.broken {
            return None;
        }
        let token = self.raw.poll_receive()?;
        let slot = self.rx.in_device.get_mut(usize::from(token));
        let Some((mut buffer, ())) = slot.and_then(Option::take) else {
            return self.violation("a receive buffer that it has not got");
        };
        // SAFETY: it is the buffer that was posted under this token.
        let received = unsafe { self.raw.receive_complete(token, &mut buffer[..]) };
        let frame = match received {
            Ok((header, len)) => buffer.get(header..header.saturating_add(len)),
            Err(_) => None,
        };
        let Some(frame) = frame else {
            self.rx.free.push(buffer);
            return self.violation("a frame longer than its buffer, or shorter than its header");
        };
        self.statistics.rx_frames += 1;
        self.statistics.rx_bytes += frame.len() as u64;
        let result = take(frame);
        self.rx.free.push(buffer);
        Some(result)
    }

    /// Posts the receive buffers that have been read.
    pub fn refill(&mut self) {
        if self.broken {
            return;
        }
        while let Some(mut buffer) = self.rx.free.pop() {
            // SAFETY: the buffer is kept untouched in `in_device` until the device returns it.
            let Ok(token) = (unsafe { self.raw.receive_begin(&mut buffer[..]) }) else {
                self.rx.free.push(buffer);
                return;
            };
            self.rx.in_device[usize::from(token)] = Some((buffer, ()));
        }
    }

    /// Sends the frame made of `parts`; `tag` comes back by [`VirtioNet::complete`].
    pub fn transmit<'a>(
        &mut self,
        parts: impl Iterator<Item = &'a [u8]>,
        tag: T,
    ) -> Result<(), TxError> {
        if self.broken {
            return Err(TxError::Broken);
        }
        let Some(mut buffer) = self.tx.free.pop() else {
            self.statistics.tx_full += 1;
            return Err(TxError::Full);
        };
        match self.fill_and_send(&mut buffer, parts) {
            Ok((token, len)) => {
                self.tx.in_device[usize::from(token)] = Some((buffer, (len, tag)));
                Ok(())
            }
            Err(error) => {
                self.tx.free.push(buffer);
                Err(error)
            }
        }
    }

    fn fill_and_send<'a>(
        &mut self,
        buffer: &mut Buffer,
        parts: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(u16, usize), TxError> {
        let header = self
            .raw
            .fill_buffer_header(&mut buffer[..])
            .map_err(|_| TxError::TooLong)?;
        let mut end = header;
        for part in parts {
            let room = buffer.get_mut(end..end + part.len());
            room.ok_or(TxError::TooLong)?.copy_from_slice(part);
            end += part.len();
        }
        if end - header > MAX_FRAME_BYTES {
            return Err(TxError::TooLong);
        }
        // SAFETY: the caller keeps the buffer untouched in `in_device` until the device
        // returns it.
        let token = unsafe { self.raw.transmit_begin(&buffer[..end]) };
        let token = token.map_err(|_| TxError::Full)?;
        self.statistics.tx_frames += 1;
        self.statistics.tx_bytes += (end - header) as u64;
        Ok((token, end))
    }

    /// Gives the tags of the frames that the device has sent to `sink`.
    pub fn complete(&mut self, mut sink: impl FnMut(T)) {
        // The device has at most as many frames as there are buffers, but could go on giving
        // them back while they are sent: one queue's worth is enough for one call.
        for _ in 0..QUEUE_SIZE {
            if self.broken {
                return;
            }
            let Some(token) = self.raw.poll_transmit() else {
                return;
            };
            let slot = self.tx.in_device.get_mut(usize::from(token));
            let Some((buffer, (len, tag))) = slot.and_then(Option::take) else {
                return self
                    .violation("a transmit buffer that it has not got")
                    .unwrap_or(());
            };
            // SAFETY: it is the slice that was sent under this token.
            let _ = unsafe { self.raw.transmit_complete(token, &buffer[..len]) };
            self.tx.free.push(buffer);
            sink(tag);
        }
    }

    /// Has the device interrupt at its next event; true when there has been one already.
    pub fn arm(&mut self) -> bool {
        if self.broken {
            return false;
        }
        self.raw.ack_interrupt();
        self.raw.enable_interrupts();
        self.raw.poll_receive().is_some() || self.raw.poll_transmit().is_some()
    }

    /// The device returned something impossible: it is not used any more.
    fn violation<R>(&mut self, what: &str) -> Option<R> {
        log::error!("virtio-net: the device returned {what}; it is not used any more");
        self.broken = true;
        None
    }
}

impl<H: Hal, L: Transport, T> fmt::Debug for VirtioNet<H, L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtioNet")
            .field("statistics", &self.statistics)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
