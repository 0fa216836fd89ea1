//! Toolstack and backend driver: what dom0 does in xenstore.

use super::{Limits, Netback, Raise};
use crate::netfront::XenbusState;
use crate::xen::fake::{FakeStore, FakeXen, GUEST};
use crate::xen::{DomId, EventPort, GrantRef};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What a backend says it can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendFeatures {
    /// Keys that are written with the value 1.
    pub keys: Vec<&'static str>,
    /// How it treats frames.
    pub limits: Limits,
}

impl BackendFeatures {
    /// Those of Linux's.
    pub fn linux() -> Self {
        Self {
            keys: [
                "feature-rx-copy",
                "feature-sg",
                "feature-gso-tcpv4",
                "feature-gso-tcpv6",
                "feature-ipv6-csum-offload",
                "feature-split-event-channels",
            ]
            .into(),
            limits: Limits::LINUX,
        }
    }

    /// Those of QEMU's `xen-net-device`.
    pub fn qemu() -> Self {
        Self {
            keys: ["feature-rx-copy"].into(),
            limits: Limits::QEMU,
        }
    }
}

/// A host with one network device for the guest.
pub struct Host {
    xen: FakeXen,
    store: FakeStore,
    domain: DomId,
    frontend: String,
    backend: String,
    features: BackendFeatures,
    ports: Option<[EventPort; 2]>,
    netback: Option<Netback>,
}

impl Host {
    /// Makes the device's directories, as the toolstack does, with a backend in `domain`.
    pub fn new(xen: FakeXen, store: FakeStore, domain: DomId, features: BackendFeatures) -> Self {
        let guest = GUEST.0;
        let host = Self {
            frontend: format!("/local/domain/{guest}/device/vif/0"),
            // A name of nobody's, so that it has to be looked up.
            backend: format!("/local/domain/{domain}/backend/nic/{guest}/0"),
            xen,
            store,
            domain,
            features,
            ports: None,
            netback: None,
        };
        let Self {
            frontend, backend, ..
        } = &host;
        for (key, value) in [
            ("backend", backend.as_str()),
            ("backend-id", &format!("{domain}")),
            ("handle", "0"),
            ("mac", "00:16:3e:01:02:03"),
            ("state", "1"),
        ] {
            host.store.write(format_args!("{frontend}/{key}"), value);
        }
        host.store.write(format_args!("{backend}/state"), 1);
        host
    }

    /// Our end of the device, once it is connected.
    pub fn netback(&mut self) -> Option<&mut Netback> {
        self.netback.as_mut()
    }

    /// The frontend's directory.
    pub fn frontend(&self) -> &str {
        &self.frontend
    }

    /// The backend's directory.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// Does what the states of both ends ask for.
    pub fn step(&mut self) {
        let frontend = self.state(&self.frontend);
        match (frontend, self.state(&self.backend)) {
            (XenbusState::Initialising, XenbusState::Initialising | XenbusState::Closed) => {
                for key in &self.features.keys {
                    self.store.write(format_args!("{}/{key}", self.backend), 1);
                }
                self.set_state(XenbusState::InitWait);
            }
            (XenbusState::Connected, XenbusState::InitWait) => {
                let state = match self.connect() {
                    Some(()) => XenbusState::Connected,
                    None => XenbusState::Closing,
                };
                self.set_state(state);
            }
            (
                XenbusState::Closed,
                XenbusState::InitWait | XenbusState::Connected | XenbusState::Closing,
            ) => {
                self.drop_connection();
                self.set_state(XenbusState::Closed);
            }
            _ => {}
        }
    }

    /// Asks the frontend to disconnect.
    pub fn close(&mut self) {
        self.set_state(XenbusState::Closing);
    }

    /// Removes the device, as when it is unplugged by force.
    pub fn remove(&mut self) {
        self.drop_connection();
        self.store.remove(&self.frontend);
        self.store.remove(&self.backend);
    }

    /// Has the backend work, and raises what events it wants to.
    pub fn poll(&mut self) -> Raise {
        let raise = self.netback.as_mut().map(Netback::poll).unwrap_or_default();
        self.raise(raise);
        raise
    }

    /// Has the backend answer up to `count` mapped requests, in the order that `pick` gives.
    pub fn complete(&mut self, count: usize, pick: impl FnMut(usize) -> usize) -> Raise {
        let netback = self.netback.as_mut();
        let raise = netback
            .map(|netback| netback.complete(count, pick))
            .unwrap_or_default();
        self.raise(raise);
        raise
    }

    /// The channels of the transmit and the receive ring, when connected.
    pub fn ports(&self) -> Vec<EventPort> {
        self.ports.into_iter().flatten().collect()
    }

    /// Events that the guest has sent since this was last asked, for the transmit and the receive
    /// ring.
    pub fn take_sends(&self) -> [u64; 2] {
        let Some([tx, rx]) = self.ports else {
            return [0; 2];
        };
        let sends = self.xen.take_sends(tx);
        [
            sends,
            if rx == tx {
                sends
            } else {
                self.xen.take_sends(rx)
            },
        ]
    }

    fn raise(&self, raise: Raise) {
        let Some([tx, rx]) = self.ports else {
            return;
        };
        for (wanted, port) in [(raise.tx, tx), (raise.rx, rx)] {
            if wanted {
                // The guest may have closed it.
                let _ = self.xen.raise(port);
            }
        }
    }

    fn connect(&mut self) -> Option<()> {
        // Linux's refuses without it, and degrades without the other.
        for required in ["request-rx-copy", "feature-rx-notify"] {
            if self.number(required) != Some(1) {
                return None;
            }
        }
        if self.number("multi-queue-num-queues").is_some() {
            return None;
        }
        let shared = self.number("event-channel");
        let ports = if self.features.keys.contains(&"feature-split-event-channels") {
            match (
                self.number("event-channel-tx"),
                self.number("event-channel-rx"),
            ) {
                (Some(tx), Some(rx)) => [tx, rx],
                _ => [shared?; 2],
            }
        } else {
            [shared?; 2]
        }
        .map(EventPort);
        self.xen.bind(self.domain, ports[0]).ok()?;
        if ports[1] != ports[0] {
            self.xen.bind(self.domain, ports[1]).ok()?;
        }
        let netback = Netback::connect(
            self.xen.clone(),
            self.domain,
            self.features.limits,
            GrantRef(self.number("tx-ring-ref")?),
            GrantRef(self.number("rx-ring-ref")?),
        )?;
        self.ports = Some(ports);
        self.netback = Some(netback);
        Some(())
    }

    fn drop_connection(&mut self) {
        self.netback = None;
        if let Some([tx, rx]) = self.ports.take() {
            // The guest has closed them, or will.
            let _ = self.xen.unbind(self.domain, tx);
            let _ = self.xen.unbind(self.domain, rx);
        }
    }

    fn number(&self, key: &str) -> Option<u32> {
        self.store
            .read(format_args!("{}/{key}", self.frontend))?
            .parse()
            .ok()
    }

    fn state(&self, directory: &str) -> XenbusState {
        let state = self.store.read(format_args!("{directory}/state"));
        let number = state.and_then(|state| state.parse().ok()).unwrap_or(0);
        XenbusState::from_number(number)
    }

    fn set_state(&self, state: XenbusState) {
        self.store
            .write(format_args!("{}/state", self.backend), state as u32);
    }
}
