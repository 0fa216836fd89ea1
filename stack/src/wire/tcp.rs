//! TCP headers (RFC 9293 §3.1) and their options.

use super::{ParseError, head};
use bitflags::bitflags;

/// IP protocol number.
pub const PROTOCOL: u8 = 6;

/// Shortest header, without options.
pub const MIN_HEADER_BYTES: usize = 20;

/// Longest header: 40 bytes of options.
pub const MAX_HEADER_BYTES: usize = 60;

/// Where the checksum field lies in the header.
pub const CHECKSUM_OFFSET: u16 = 16;

/// Most SACK blocks that fit into the options (RFC 2018 §3).
pub const MAX_SACK_BLOCKS: usize = 4;

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_MSS: u8 = 2;
const OPTION_WINDOW_SCALE: u8 = 3;
const OPTION_SACK_PERMITTED: u8 = 4;
const OPTION_SACK: u8 = 5;
const OPTION_TIMESTAMPS: u8 = 8;

bitflags! {
    /// Control bits.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Flags: u8 {
        /// No more data from the sender.
        const FIN = 0x01;
        /// Synchronise sequence numbers.
        const SYN = 0x02;
        /// Reset the connection.
        const RST = 0x04;
        /// Push.
        const PSH = 0x08;
        /// The acknowledgement field is significant.
        const ACK = 0x10;
        /// The urgent pointer is significant.
        const URG = 0x20;
        /// ECN echo (RFC 3168 §6.1).
        const ECE = 0x40;
        /// Congestion window reduced (RFC 3168 §6.1).
        const CWR = 0x80;
    }
}

/// The timestamps option (RFC 7323 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the value last received, zero in a first SYN.
    pub echo: u32,
}

/// A SACK block: sequence numbers received, `left` included, `right` not (RFC 2018 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: u32,
    /// Sequence number right behind the block.
    pub right: u32,
}

/// The SACK blocks of one header.
pub type SackBlocks = heapless::Vec<SackBlock, MAX_SACK_BLOCKS, u8>;

/// The options this stack knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size, of a SYN (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift, of a SYN, as it stands there: more than 14 means 14 (RFC 7323 §2.3).
    pub window_scale: Option<u8>,
    /// SACK permitted, of a SYN (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 §3.2).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks (RFC 2018 §3), in the order they stand in the header.
    pub sack: SackBlocks,
}

impl Options {
    /// Parses the bytes between the fixed header and the data. Unknown options are skipped; an
    /// option whose length is impossible ends the list, what came before it stays valid
    /// (RFC 9293 §3.1: lengths must not lead the parser astray).
    fn parse(mut bytes: &[u8]) -> Self {
        let mut options = Self::default();
        // RFC 7323 appendix A: the layout that nearly every segment has.
        if let [1, 1, 8, 10, v0, v1, v2, v3, e0, e1, e2, e3] = *bytes {
            options.timestamps = Some(Timestamps {
                value: u32::from_be_bytes([v0, v1, v2, v3]),
                echo: u32::from_be_bytes([e0, e1, e2, e3]),
            });
            return options;
        }
        loop {
            bytes = match *bytes {
                [] | [OPTION_END, ..] => return options,
                [OPTION_NOP, ref rest @ ..] => rest,
                [kind, length, ref rest @ ..] => {
                    let Some((data, rest)) = usize::from(length)
                        .checked_sub(2)
                        .and_then(|length| rest.split_at_checked(length))
                    else {
                        return options;
                    };
                    options.read(kind, data);
                    rest
                }
                [_] => return options,
            };
        }
    }

    /// Takes in one option; one of the wrong size counts as unknown.
    fn read(&mut self, kind: u8, data: &[u8]) {
        match (kind, data) {
            (OPTION_MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (OPTION_WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (OPTION_SACK_PERMITTED, []) => self.sack_permitted = true,
            (OPTION_SACK, blocks) => {
                let (blocks, []) = blocks.as_chunks::<8>() else {
                    return;
                };
                self.sack = blocks
                    .iter()
                    .take(MAX_SACK_BLOCKS)
                    .map(|&[l0, l1, l2, l3, r0, r1, r2, r3]| SackBlock {
                        left: u32::from_be_bytes([l0, l1, l2, l3]),
                        right: u32::from_be_bytes([r0, r1, r2, r3]),
                    })
                    .collect();
            }
            (OPTION_TIMESTAMPS, &[v0, v1, v2, v3, e0, e1, e2, e3]) => {
                self.timestamps = Some(Timestamps {
                    value: u32::from_be_bytes([v0, v1, v2, v3]),
                    echo: u32::from_be_bytes([e0, e1, e2, e3]),
                });
            }
            _ => {}
        }
    }

    /// Writes the options, padded to whole words, and returns their length. SACK blocks come last
    /// and are cut to the room left.
    fn emit(&self, out: &mut [u8; MAX_HEADER_BYTES - MIN_HEADER_BYTES]) -> usize {
        let Self {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            sack,
        } = self;
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
            at
        };
        let mut len = 0;
        if let Some(mss) = mss {
            let [high, low] = mss.to_be_bytes();
            len = put(&[OPTION_MSS, 4, high, low]);
        }
        if *sack_permitted {
            len = put(&[OPTION_NOP, OPTION_NOP, OPTION_SACK_PERMITTED, 2]);
        }
        if let Some(Timestamps { value, echo }) = timestamps {
            put(&[OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMPS, 10]);
            put(&value.to_be_bytes());
            len = put(&echo.to_be_bytes());
        }
        if let Some(shift) = window_scale {
            len = put(&[OPTION_NOP, OPTION_WINDOW_SCALE, 3, *shift]);
        }
        // At most 24 bytes so far: there is room for one block always.
        let blocks = sack.len().min((MAX_OPTION_BYTES - len - 4) / 8);
        if blocks > 0 {
            put(&[OPTION_NOP, OPTION_NOP, OPTION_SACK, (2 + 8 * blocks) as u8]);
            for block in &sack[..blocks] {
                put(&block.left.to_be_bytes());
                len = put(&block.right.to_be_bytes());
            }
        }
        len
    }
}

const MAX_OPTION_BYTES: usize = MAX_HEADER_BYTES - MIN_HEADER_BYTES;

/// A TCP header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number; meaningless without [`Flags::ACK`].
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window, not scaled.
    pub window: u16,
    /// Urgent pointer; meaningless without [`Flags::URG`].
    pub urgent: u16,
    /// Options.
    pub options: Options,
}

impl Header {
    /// Parses the header at the start of `bytes` and returns it with its length in bytes, options
    /// included. The checksum is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), ParseError> {
        let fixed = head::<MIN_HEADER_BYTES>(bytes)?;
        let header_bytes = usize::from(fixed[12] >> 4) * 4;
        if header_bytes < MIN_HEADER_BYTES {
            return Err(ParseError::Length {
                expected_bytes: MIN_HEADER_BYTES,
                got_bytes: header_bytes,
            });
        }
        let Some(options) = bytes.get(MIN_HEADER_BYTES..header_bytes) else {
            return Err(ParseError::Truncated {
                expected_bytes: header_bytes,
                got_bytes: bytes.len(),
            });
        };
        let header = Self {
            src_port: u16::from_be_bytes([fixed[0], fixed[1]]),
            dst_port: u16::from_be_bytes([fixed[2], fixed[3]]),
            seq: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
            ack: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
            flags: Flags::from_bits_retain(fixed[13]),
            window: u16::from_be_bytes([fixed[14], fixed[15]]),
            urgent: u16::from_be_bytes([fixed[18], fixed[19]]),
            options: Options::parse(options),
        };
        Ok((header, header_bytes))
    }

    /// Writes the header with a checksum of zero and returns its length in bytes.
    pub fn emit(&self, out: &mut [u8; MAX_HEADER_BYTES]) -> usize {
        let Self {
            src_port,
            dst_port,
            seq,
            ack,
            flags,
            window,
            urgent,
            options,
        } = self;
        let mut option_bytes = [0; MAX_OPTION_BYTES];
        let header_bytes = MIN_HEADER_BYTES + options.emit(&mut option_bytes);
        out[0..2].copy_from_slice(&src_port.to_be_bytes());
        out[2..4].copy_from_slice(&dst_port.to_be_bytes());
        out[4..8].copy_from_slice(&seq.to_be_bytes());
        out[8..12].copy_from_slice(&ack.to_be_bytes());
        out[12] = (header_bytes as u8 / 4) << 4;
        out[13] = flags.bits();
        out[14..16].copy_from_slice(&window.to_be_bytes());
        out[16..18].fill(0);
        out[18..20].copy_from_slice(&urgent.to_be_bytes());
        out[MIN_HEADER_BYTES..].copy_from_slice(&option_bytes);
        header_bytes
    }
}

#[cfg(test)]
mod tests;
