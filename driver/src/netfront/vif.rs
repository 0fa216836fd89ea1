//! The device's life in xenstore: finding the backend, agreeing on features, connecting, and going
//! down with it.
//!
//! Both ends have a directory with a `state` that only they write. The toolstack made ours,
//! `device/vif/<n>` in the domain's own, and wrote there where the backend's is.

use super::{Features, Netfront, OpenError, QueueKeys, tx};
use crate::xen::xenstore::{Error, Transaction, Watch, Xenstore, optional};
use crate::xen::{DomId, PAGE_BYTES};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::cell::RefCell;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

/// Where the domain's network devices are.
const VIFS: &str = "device/vif";

/// The MTU where the toolstack says nothing of it.
const DEFAULT_MTU_BYTES: u16 = 1500;

/// Least MTU (RFC 791: what every link must carry).
const MIN_MTU_BYTES: u32 = 68;

/// A backend without scatter-gather has one page for a received frame, and QEMU's leaves two bytes
/// of it out.
const MAX_ONE_PAGE_MTU_BYTES: u32 = (PAGE_BYTES - 2 - tx::ETHERNET_HEADER_BYTES) as u32;

/// Largest MTU with scatter-gather: what a frame of 65,535 bytes carries.
const MAX_MTU_BYTES: u32 = (tx::MAX_FRAME_BYTES - tx::ETHERNET_HEADER_BYTES) as u32;

/// The state of one end (`io/xenbus.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum XenbusState {
    /// Not there, or not a state.
    Unknown = 0,
    /// Has not done anything.
    Initialising = 1,
    /// Has said what it can do, and waits for the other end's rings.
    InitWait = 2,
    /// Has said where its rings are.
    Initialised = 3,
    /// Ready for frames.
    Connected = 4,
    /// Is to be disconnected.
    Closing = 5,
    /// Has disconnected.
    Closed = 6,
    /// Changes what it can do.
    Reconfiguring = 7,
    /// Has changed what it can do.
    Reconfigured = 8,
}

impl XenbusState {
    /// The state that a number stands for.
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Initialising,
            2 => Self::InitWait,
            3 => Self::Initialised,
            4 => Self::Connected,
            5 => Self::Closing,
            6 => Self::Closed,
            7 => Self::Reconfiguring,
            8 => Self::Reconfigured,
            _ => Self::Unknown,
        }
    }
}

/// Why a device could not be connected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The backend went away meanwhile.
    Backend {
        /// The state it is in.
        state: XenbusState,
    },
    /// Our directory names another backend now, or none; or it is gone altogether.
    Moved,
    /// The backend's domain is not one.
    BackendId {
        /// What was found.
        found: u32,
    },
    /// The Ethernet address is missing or none.
    Mac {
        /// What was found.
        found: Option<String>,
    },
    /// The backend does not copy received frames into our pages, and nothing else is supported.
    NoRxCopy,
    /// The device could not be opened.
    Open(OpenError),
    /// A request to xenstore failed.
    Store(Error),
}

impl From<Error> for ConnectError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<OpenError> for ConnectError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backend { state } => {
                write!(f, "the backend became {state:?}; expected Connected")
            }
            Self::Moved => f.write_str("the device was removed, or has another backend now"),
            Self::BackendId { found } => {
                write!(f, "backend-id is {found}; expected less than 32752")
            }
            Self::Mac { found: Some(found) } => {
                write!(f, "mac is {found:?}; expected six octets, as 00:16:3e:…")
            }
            Self::Mac { found: None } => {
                f.write_str("mac is missing, ours and the backend's; expected either")
            }
            Self::NoRxCopy => f.write_str("feature-rx-copy of the backend is missing; expected 1"),
            Self::Open(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ConnectError {}

/// A network device as xenstore has it.
///
/// The futures may be dropped at any time, for a timeout say; [`Vif::connect`] then starts over.
/// None of them borrows the device while it waits.
#[derive(Debug)]
pub struct Vif {
    store: Xenstore,
    /// Our directory.
    frontend: String,
    /// The backend's, as of the last connection.
    backend: Option<Backend>,
}

#[derive(Debug)]
struct Backend {
    path: String,
    domain: DomId,
    /// On its state.
    state: Watch,
    /// On the key of our directory that names it.
    name: Watch,
}

impl Vif {
    /// The directories of the network devices that the domain has now, lowest number first.
    pub async fn list(store: &Xenstore) -> Result<Vec<String>, Error> {
        let names = optional(store.directory(VIFS).await)?.unwrap_or_default();
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers
            .into_iter()
            .map(|number| format!("{VIFS}/{number}"))
            .collect())
    }

    /// The device whose directory is `frontend`.
    pub fn new(store: Xenstore, frontend: impl fmt::Display) -> Self {
        Self {
            store,
            frontend: frontend.to_string(),
            backend: None,
        }
    }

    /// Our directory.
    pub fn frontend(&self) -> &str {
        &self.frontend
    }

    /// Connects `device` to the backend, however long that takes: until the backend has come up,
    /// for one thing.
    ///
    /// A connection that `device` has is closed. Afterwards it is to be announced, by gratuitous
    /// ARP and neighbour advertisements.
    pub async fn connect(&mut self, device: &RefCell<Netfront>) -> Result<(), ConnectError> {
        device.borrow_mut().close();
        self.backend = None;
        let backend = self.find_backend().await?;
        let result = self.connect_to(backend, device).await;
        if result.is_err() {
            device.borrow_mut().close();
        }
        result
    }

    /// Waits until the backend wants to disconnect, or is gone. The caller then calls
    /// [`Vif::disconnect`].
    pub async fn backend_closing(&mut self) -> Result<XenbusState, Error> {
        let Some(backend) = &mut self.backend else {
            return Ok(XenbusState::Unknown);
        };
        loop {
            let state = backend.state(&self.store).await?;
            if is_down(state) {
                return Ok(state);
            }
            match backend.changed(&self.store, &self.frontend).await {
                Ok(()) => {}
                Err(ConnectError::Store(error)) => return Err(error),
                // To us it is gone, whatever its state is.
                Err(_) => return Ok(XenbusState::Unknown),
            }
        }
    }

    /// Closes `device` and tells the backend, unless the device has been removed from xenstore.
    pub async fn disconnect(&mut self, device: &RefCell<Netfront>) -> Result<(), Error> {
        device.borrow_mut().close();
        self.backend = None;
        self.set_state(XenbusState::Closed).await
    }

    async fn connect_to(
        &mut self,
        mut backend: Backend,
        device: &RefCell<Netfront>,
    ) -> Result<(), ConnectError> {
        self.reset(&mut backend).await?;
        self.set_state(XenbusState::Initialising).await?;
        while backend.state(&self.store).await? != XenbusState::InitWait {
            backend.changed(&self.store, &self.frontend).await?;
        }
        let features = self.features(&backend).await?;
        let mac = self.mac(&backend).await?;
        let keys = device.borrow_mut().open(backend.domain, mac, features)?;
        self.publish(keys, features.split_event_channels).await?;
        self.set_state(XenbusState::Connected).await?;
        loop {
            match backend.state(&self.store).await? {
                XenbusState::Connected => break,
                state if is_down(state) => return Err(ConnectError::Backend { state }),
                _ => backend.changed(&self.store, &self.frontend).await?,
            }
        }
        self.backend = Some(backend);
        device.borrow_mut().start();
        Ok(())
    }

    /// Ends what there is of an earlier connection, so that the backend does not take its rings
    /// for those of the next.
    async fn reset(&self, backend: &mut Backend) -> Result<(), ConnectError> {
        let ours = read_state(&self.store, &self.frontend).await?;
        match ours {
            XenbusState::Unknown | XenbusState::Initialising => return Ok(()),
            XenbusState::Closed => {}
            XenbusState::InitWait
            | XenbusState::Initialised
            | XenbusState::Connected
            | XenbusState::Closing
            | XenbusState::Reconfiguring
            | XenbusState::Reconfigured => self.set_state(XenbusState::Closed).await?,
        }
        loop {
            match backend.state(&self.store).await? {
                XenbusState::Unknown | XenbusState::Closed => return Ok(()),
                // It has come up since we were closed.
                XenbusState::Initialising | XenbusState::InitWait
                    if ours == XenbusState::Closed =>
                {
                    return Ok(());
                }
                _ => backend.changed(&self.store, &self.frontend).await?,
            }
        }
    }

    /// The backend that our directory names, once it does.
    async fn find_backend(&self) -> Result<Backend, ConnectError> {
        let frontend = &self.frontend;
        // The watch first: what changes after a look is then not missed.
        let mut changes = self.store.watch(frontend).await?;
        let (path, id) = loop {
            changes.changed().await?;
            let path = self.store.read_string(format_args!("{frontend}/backend"));
            let id = self.store.read_u32(format_args!("{frontend}/backend-id"));
            if let (Some(path), Some(id)) = (optional(path.await)?, optional(id.await)?) {
                break (path, id);
            }
            if optional(self.store.directory(frontend).await)?.is_none() {
                return Err(ConnectError::Moved);
            }
        };
        // Domain numbers from here on have meanings of their own (`DOMID_FIRST_RESERVED`).
        let domain = u16::try_from(id)
            .ok()
            .filter(|&id| id < DomId::SELF.0)
            .ok_or(ConnectError::BackendId { found: id })?;
        let state = self.store.watch(format_args!("{path}/state")).await?;
        let name = self.store.watch(format_args!("{frontend}/backend")).await?;
        Ok(Backend {
            path,
            domain: DomId(domain),
            state,
            name,
        })
    }

    /// What both ends can do.
    async fn features(&self, backend: &Backend) -> Result<Features, ConnectError> {
        if !self.flag(backend, "feature-rx-copy").await? {
            return Err(ConnectError::NoRxCopy);
        }
        let scatter_gather = self.flag(backend, "feature-sg").await?;
        let tso4 = scatter_gather && self.flag(backend, "feature-gso-tcpv4").await?;
        let tso6 = scatter_gather && self.flag(backend, "feature-gso-tcpv6").await?;
        let tx_checksum6 = self.flag(backend, "feature-ipv6-csum-offload").await?;
        let split_event_channels = self.flag(backend, "feature-split-event-channels").await?;
        let mtu = self
            .number(format_args!("{}/mtu", self.frontend))
            .await?
            .unwrap_or(u32::from(DEFAULT_MTU_BYTES));
        let most = if scatter_gather {
            MAX_MTU_BYTES
        } else {
            MAX_ONE_PAGE_MTU_BYTES
        };
        Ok(Features {
            mtu_bytes: mtu.clamp(MIN_MTU_BYTES, most) as u16,
            scatter_gather,
            tso4,
            // A large segment has a blank checksum.
            tso6: tso6 && tx_checksum6,
            tx_checksum6,
            split_event_channels,
        })
    }

    /// Our Ethernet address, which some toolstacks write to the backend's directory alone.
    async fn mac(&self, backend: &Backend) -> Result<[u8; 6], ConnectError> {
        let ours = self
            .store
            .read_string(format_args!("{}/mac", self.frontend));
        let mut text = optional(ours.await)?;
        if text.is_none() {
            let theirs = self.store.read_string(format_args!("{}/mac", backend.path));
            text = optional(theirs.await)?;
        }
        let mac = text.as_deref().and_then(parse_mac);
        mac.ok_or(ConnectError::Mac { found: text })
    }

    /// Says what we can do and where our rings are, all at once.
    async fn publish(&self, keys: QueueKeys, split: bool) -> Result<(), Error> {
        let frontend = &self.frontend;
        self.store
            .transaction(async |transaction| {
                for feature in [
                    "request-rx-copy",
                    "feature-rx-notify",
                    "feature-sg",
                    "feature-gso-tcpv4",
                    "feature-gso-tcpv6",
                    "feature-ipv6-csum-offload",
                ] {
                    transaction
                        .write(format_args!("{frontend}/{feature}"), 1)
                        .await?;
                }
                // A connection before this one, or the boot loader's, may have left others.
                for stale in [
                    "feature-no-csum-offload",
                    "multi-queue-num-queues",
                    "event-channel",
                    "event-channel-tx",
                    "event-channel-rx",
                ] {
                    optional(transaction.rm(format_args!("{frontend}/{stale}")).await)?;
                }
                write_queue(transaction, frontend, keys, split).await
            })
            .await
    }

    /// Writes our state, unless our directory is gone: it must not be made anew.
    async fn set_state(&self, state: XenbusState) -> Result<(), Error> {
        let path = format!("{}/state", self.frontend);
        self.store
            .transaction(async |transaction| {
                if optional(transaction.read(&path).await)?.is_some() {
                    transaction.write(&path, state as u32).await?;
                }
                Ok(())
            })
            .await
    }

    /// Whether the backend has a feature. What is not a number is none.
    async fn flag(&self, backend: &Backend, feature: &str) -> Result<bool, Error> {
        let path = format!("{}/{feature}", backend.path);
        Ok(self.number(path).await? == Some(1))
    }

    /// The number at `path`, if there is one.
    async fn number(&self, path: impl fmt::Display) -> Result<Option<u32>, Error> {
        match self.store.read_u32(&path).await {
            Err(Error::BadValue { expected, found }) => {
                log::warn!("netfront: {path} is {found:?}; expected {expected}; ignored");
                Ok(None)
            }
            result => optional(result),
        }
    }
}

impl Backend {
    /// The state it is in.
    async fn state(&self, store: &Xenstore) -> Result<XenbusState, Error> {
        read_state(store, &self.path).await
    }

    /// Waits until it may have changed its state. An error when the device is not its own any
    /// more: a backend whose domain died never changes again, and the toolstack names another.
    async fn changed(&mut self, store: &Xenstore, frontend: &str) -> Result<(), ConnectError> {
        {
            let mut state = pin!(self.state.changed());
            let mut name = pin!(self.name.changed());
            poll_fn(|cx| match state.as_mut().poll(cx) {
                Poll::Pending => name.as_mut().poll(cx),
                ready @ Poll::Ready(_) => ready,
            })
            .await?;
        }
        let name = store.read_string(format_args!("{frontend}/backend"));
        match optional(name.await)? {
            Some(name) if name == self.path => Ok(()),
            _ => Err(ConnectError::Moved),
        }
    }
}

/// The state of the end whose directory this is.
async fn read_state(store: &Xenstore, directory: &str) -> Result<XenbusState, Error> {
    match store.read_u32(format_args!("{directory}/state")).await {
        Err(Error::BadValue { .. }) => Ok(XenbusState::Unknown),
        result => Ok(XenbusState::from_number(optional(result)?.unwrap_or(0))),
    }
}

/// Writes where a queue's rings are to the directory that is the queue's.
async fn write_queue(
    transaction: &Transaction,
    directory: &str,
    keys: QueueKeys,
    split: bool,
) -> Result<(), Error> {
    let QueueKeys {
        tx_ring_ref,
        rx_ring_ref,
        tx_port,
        rx_port,
    } = keys;
    let mut numbers = vec![
        ("tx-ring-ref", tx_ring_ref.0),
        ("rx-ring-ref", rx_ring_ref.0),
    ];
    if split {
        numbers.push(("event-channel-tx", tx_port.0));
        numbers.push(("event-channel-rx", rx_port.0));
    } else {
        numbers.push(("event-channel", tx_port.0));
    }
    for (key, number) in numbers {
        transaction
            .write(format_args!("{directory}/{key}"), number)
            .await?;
    }
    Ok(())
}

/// Whether a backend in this state has no connection, or will have none soon.
fn is_down(state: XenbusState) -> bool {
    match state {
        XenbusState::Unknown | XenbusState::Closing | XenbusState::Closed => true,
        XenbusState::Initialising
        | XenbusState::InitWait
        | XenbusState::Initialised
        | XenbusState::Connected
        | XenbusState::Reconfiguring
        | XenbusState::Reconfigured => false,
    }
}

/// Six octets in hexadecimal with colons between.
fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut octets = text.split(':');
    for byte in &mut mac {
        let octet = octets.next().filter(|octet| octet.len() == 2)?;
        // The parser takes a sign.
        if !octet.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(octet, 16).ok()?;
    }
    octets.next().is_none().then_some(mac)
}

#[cfg(test)]
mod tests;
