//! The kernel command line: `ip=`, `loglevel=` and `sysctl.…=` in Linux's syntax.

use core::{fmt, net::Ipv4Addr, str::FromStr};
use log::LevelFilter;
use paceline_stack::{sysctl, tcp};

/// Most virtio-mmio devices taken from the command line; QEMU's microvm has 24.
pub const MAX_VIRTIO_MMIO: usize = 24;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The static address, if `ip=` gives one.
    pub ip: Option<Ip>,
    /// What to log.
    pub log_level: LevelFilter,
    /// Devices that QEMU announces with `virtio_mmio.device=`.
    pub virtio_mmio: heapless::Vec<VirtioMmio, MAX_VIRTIO_MMIO>,
    /// The settings of TCP, as `sysctl.…=` words leave them.
    pub tcp: tcp::Config,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ip: None,
            log_level: LevelFilter::Info,
            virtio_mmio: heapless::Vec::new(),
            tcp: tcp::Config::default(),
        }
    }
}

impl Options {
    /// Reads a command line. Words of no meaning here go to `unknown`; the last of several
    /// words of one name counts. Spaces between double quotes part no words, as in
    /// `sysctl.net.ipv4.tcp_rmem="4096 131072 6291456"`.
    pub fn parse<'a>(line: &'a str, mut unknown: impl FnMut(&'a str)) -> Result<Self, Error<'a>> {
        let mut options = Self::default();
        for word in words(line) {
            let fail = |expected| Error { word, expected };
            match unquoted(word)
                .split_once('=')
                .map(|(name, value)| (name, unquoted(value)))
            {
                Some(("ip", value)) => options.ip = Ip::parse(value).map_err(fail)?,
                Some(("loglevel", value)) => {
                    options.log_level = log_level(value).ok_or(fail("a number from 0 to 8"))?;
                }
                Some(("virtio_mmio.device", value)) => {
                    let device = VirtioMmio::parse(value)
                        .ok_or(fail("<size>@<address>:<irq>, as in 512@0xfeb00e00:12"))?;
                    options
                        .virtio_mmio
                        .push(device)
                        .map_err(|_| fail("at most 24 virtio_mmio.device words"))?;
                }
                Some((name, value)) => match name.strip_prefix("sysctl.") {
                    Some(name) => sysctl::write(&mut options.tcp, name, value)
                        .map_err(|error| fail(expected_setting(&error)))?,
                    None => unknown(word),
                },
                None => unknown(word),
            }
        }
        Ok(options)
    }
}

/// The words of a line: parted by spaces that are not between double quotes.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    line.split(move |c: char| {
        quoted ^= c == '"';
        !quoted && c.is_ascii_whitespace()
    })
    .filter(|word| !word.is_empty())
}

/// The text without the quotes around it; the last one may be missing.
fn unquoted(text: &str) -> &str {
    text.strip_prefix('"')
        .map_or(text, |text| text.strip_suffix('"').unwrap_or(text))
}

/// What a word that sets a setting should have been.
fn expected_setting(error: &sysctl::Error) -> &'static str {
    match error {
        sysctl::Error::Value { expected, .. } => expected,
        _ => "the name of a setting behind 'sysctl.', as in sysctl.net.ipv4.tcp_sack=0",
    }
}

/// A word whose value cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error<'a> {
    /// The word.
    pub word: &'a str,
    /// What would have been right.
    pub expected: &'static str,
}

impl fmt::Display for Error<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { word, expected } = self;
        write!(f, "command line: '{word}': expected {expected}")
    }
}

impl core::error::Error for Error<'_> {}

/// Linux's console log level: what is less than the number is shown (error 3, warning 4,
/// notice 5, info 6, debug 7).
fn log_level(value: &str) -> Option<LevelFilter> {
    Some(match value.parse::<u8>().ok()? {
        0..=3 => LevelFilter::Off,
        4 => LevelFilter::Error,
        5 | 6 => LevelFilter::Warn,
        7 => LevelFilter::Info,
        8 => LevelFilter::Debug,
        _ => return None,
    })
}

/// A static IPv4 configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ip {
    /// This host's address.
    pub address: Ipv4Addr,
    /// Length of the network's prefix, 0 to 32.
    pub prefix_len: u8,
    /// The default gateway.
    pub gateway: Option<Ipv4Addr>,
    /// This host's name.
    pub hostname: heapless::String<64>,
}

const IP_SYNTAX: &str = "<client>:<server>:<gateway>:<netmask>:<hostname>:<device>:<autoconf>, \
    as in 10.0.0.2::10.0.0.1:255.255.255.0::eth0:off; fields may be empty";

impl Ip {
    /// The value of Linux's `ip=` (nfsroot documentation); none for `off` and `none`. Server,
    /// device and the name servers behind are accepted and without meaning here.
    fn parse(value: &str) -> Result<Option<Self>, &'static str> {
        if matches!(value, "off" | "none") {
            return Ok(None);
        }
        if is_autoconf(value) {
            return Err("a static address: there is no automatic configuration");
        }
        if value.contains('/') {
            return Err("Linux's syntax, with the netmask in the fourth field: \
                10.0.0.2::10.0.0.1:255.255.255.0::eth0:off");
        }
        // client, server, gateway, netmask, hostname, device, autoconf, two name servers, NTP.
        let mut fields = [""; 10];
        let mut rest = value.split(':');
        for field in &mut fields {
            *field = rest.next().unwrap_or_default();
        }
        if rest.next().is_some() {
            return Err(IP_SYNTAX);
        }
        let [
            client,
            server,
            gateway,
            netmask,
            hostname,
            _,
            autoconf,
            dns0,
            dns1,
            ntp,
        ] = fields;
        let address = optional::<Ipv4Addr>(client)?.ok_or(IP_SYNTAX)?;
        if address.is_unspecified() || address.is_broadcast() || address.is_multicast() {
            return Err("a unicast address in the first field");
        }
        for unused in [server, dns0, dns1, ntp] {
            optional::<Ipv4Addr>(unused)?;
        }
        let gateway = optional::<Ipv4Addr>(gateway)?.filter(|a| !a.is_unspecified());
        let prefix_len = match optional::<Ipv4Addr>(netmask)? {
            Some(mask) => prefix_len(mask).ok_or("a contiguous netmask in the fourth field")?,
            None => default_prefix_len(address),
        };
        if !matches!(autoconf, "" | "off" | "none") {
            return Err(
                "'off' or 'none' in the seventh field: there is no automatic configuration",
            );
        }
        let hostname = heapless::String::from_str(hostname)
            .map_err(|_| "a hostname of at most 64 bytes in the fifth field")?;
        Ok(Some(Self {
            address,
            prefix_len,
            gateway,
            hostname,
        }))
    }

    /// The network mask.
    pub fn netmask(&self) -> Ipv4Addr {
        let bits = u32::MAX
            .checked_shl(32 - u32::from(self.prefix_len.min(32)))
            .unwrap_or(0);
        Ipv4Addr::from_bits(bits)
    }
}

fn is_autoconf(value: &str) -> bool {
    matches!(value, "on" | "any" | "dhcp" | "bootp" | "rarp" | "both")
}

fn optional<T: FromStr>(field: &str) -> Result<Option<T>, &'static str> {
    if field.is_empty() {
        return Ok(None);
    }
    field.parse().map(Some).map_err(|_| IP_SYNTAX)
}

fn prefix_len(mask: Ipv4Addr) -> Option<u8> {
    let bits = mask.to_bits();
    let len = bits.leading_ones();
    (bits.count_ones() == len).then_some(len as u8)
}

/// Without a netmask Linux goes by the address's class.
fn default_prefix_len(address: Ipv4Addr) -> u8 {
    match address.octets()[0] {
        0..=127 => 8,
        128..=191 => 16,
        _ => 24,
    }
}

/// A device on QEMU's virtio-mmio transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtioMmio {
    /// Physical address of its registers.
    pub address: u64,
    /// Bytes of its registers.
    pub len: u64,
    /// Its global interrupt number.
    pub irq: u32,
}

impl VirtioMmio {
    /// The value of Linux's `virtio_mmio.device=`: `<size>@<address>:<irq>[:<id>]`.
    fn parse(value: &str) -> Option<Self> {
        let (len, rest) = value.split_once('@')?;
        let (address, rest) = rest.split_once(':')?;
        let irq = rest.split_once(':').map_or(rest, |(irq, _)| irq);
        let address = number(address)?;
        let len = size(len)?;
        address.checked_add(len)?;
        Some(Self {
            address,
            len,
            irq: u32::try_from(number(irq)?).ok()?,
        })
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A number with one of the suffixes K, M and G, as Linux's memparse reads it.
fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 1 << 10),
        b'M' | b'm' => (&text[..text.len() - 1], 1 << 20),
        b'G' | b'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    number(digits)?.checked_mul(unit)
}

#[cfg(test)]
mod tests;
