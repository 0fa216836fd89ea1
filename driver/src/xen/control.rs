//! What the toolstack asks of the domain through `control/shutdown` (docs/misc/xenstore-paths.pandoc).

use super::xenstore::{Error, Watch, Xenstore, optional};

/// Where requests come.
const SHUTDOWN: &str = "control/shutdown";

/// A request of the toolstack: of `xl shutdown`, `xl reboot` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownRequest {
    /// Crash, so that a dump may be taken.
    Crash,
    /// Stop. Toolstacks treat it like [`ShutdownRequest::Poweroff`].
    Halt,
    /// Power off.
    Poweroff,
    /// Start again.
    Reboot,
    /// Suspend, to be saved or moved.
    Suspend,
}

impl ShutdownRequest {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "crash" => Some(Self::Crash),
            "halt" => Some(Self::Halt),
            "poweroff" => Some(Self::Poweroff),
            "reboot" => Some(Self::Reboot),
            "suspend" => Some(Self::Suspend),
            _ => None,
        }
    }
}

/// The requests of the toolstack, one after the other.
#[derive(Debug)]
pub struct ShutdownRequests {
    store: Xenstore,
    watch: Watch,
}

impl ShutdownRequests {
    /// Tells the toolstack that power-off and reboot are heeded, and begins to listen.
    pub async fn listen(store: &Xenstore) -> Result<Self, Error> {
        for feature in ["poweroff", "reboot"] {
            let path = format_args!("control/feature-{feature}");
            // A toolstack that keeps the directory to itself asks without looking.
            if let Err(error) = store.write(path, 1).await {
                log::warn!("control/feature-{feature} not written: {error}");
            }
        }
        Ok(Self {
            store: store.clone(),
            watch: store.watch(SHUTDOWN).await?,
        })
    }

    /// Waits for the next request and acknowledges it. One that is not known is acknowledged and
    /// reported in the log.
    ///
    /// An error means that the connection to xenstore is in trouble: call again once it is up.
    pub async fn next(&mut self) -> Result<ShutdownRequest, Error> {
        loop {
            self.watch.changed().await?;
            // Read and acknowledged in one transaction: a request that overtakes another is not
            // lost between the two.
            let request = self
                .store
                .transaction(async |t| {
                    let request = optional(t.read_string(SHUTDOWN).await)?.unwrap_or_default();
                    if !request.is_empty() {
                        t.write(SHUTDOWN, "").await?;
                    }
                    Ok(request)
                })
                .await;
            let request = match request {
                Ok(request) => request,
                Err(error @ Error::BadValue { .. }) => {
                    log::warn!("{SHUTDOWN}: {error}");
                    continue;
                }
                Err(error) => return Err(error),
            };
            // Empty: the start of the watch, or the echo of the acknowledgement.
            if request.is_empty() {
                continue;
            }
            match ShutdownRequest::parse(&request) {
                Some(request) => return Ok(request),
                None => log::warn!("{SHUTDOWN}: unknown request {request:?}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xen::errno::Errno;
    use crate::xen::fake::{FakeXen, block_on};
    use core::pin::pin;
    use core::task::{Context, Waker};

    #[test]
    fn requests_are_returned_and_acknowledged() {
        let xen = FakeXen::new();
        let (store, client) = (xen.store(), xen.xenstore());
        let run = |requests: &mut ShutdownRequests| {
            block_on(&store, &client, || {}, requests.next()).expect("stuck")
        };
        let listen = ShutdownRequests::listen(&client);
        let mut requests = block_on(&store, &client, || {}, listen).unwrap().unwrap();
        assert_eq!(store.read("control/feature-poweroff").as_deref(), Some("1"));
        assert_eq!(store.read("control/feature-reboot").as_deref(), Some("1"));

        for (text, expected) in [
            ("poweroff", ShutdownRequest::Poweroff),
            ("reboot", ShutdownRequest::Reboot),
            ("halt", ShutdownRequest::Halt),
            ("suspend", ShutdownRequest::Suspend),
            ("crash", ShutdownRequest::Crash),
        ] {
            store.write(SHUTDOWN, text);
            assert_eq!(run(&mut requests), Ok(expected));
            assert_eq!(store.read(SHUTDOWN).as_deref(), Some(""));
        }
    }

    #[test]
    fn nonsense_is_acknowledged_and_the_next_request_heeded() {
        let xen = FakeXen::new();
        let (store, client) = (xen.store(), xen.xenstore());
        store.refuse_next(Errno::EACCES);
        store.refuse_next(Errno::EACCES);
        store.write(SHUTDOWN, "explode");
        let listen = ShutdownRequests::listen(&client);
        let mut requests = block_on(&store, &client, || {}, listen).unwrap().unwrap();
        {
            let mut next = pin!(requests.next());
            let mut cx = Context::from_waker(Waker::noop());
            for _ in 0..50 {
                assert!(next.as_mut().poll(&mut cx).is_pending());
                store.run();
                client.poll();
            }
        }
        assert_eq!(store.read(SHUTDOWN).as_deref(), Some(""));
        store.write(SHUTDOWN, "reboot");
        let next = block_on(&store, &client, || {}, requests.next());
        assert_eq!(next, Some(Ok(ShutdownRequest::Reboot)));
    }

    #[test]
    fn a_request_that_was_there_before_is_heeded() {
        let xen = FakeXen::new();
        let (store, client) = (xen.store(), xen.xenstore());
        store.write(SHUTDOWN, "poweroff");
        store.fail_commits(2);
        let next = block_on(&store, &client, || {}, async {
            ShutdownRequests::listen(&client).await?.next().await
        });
        assert_eq!(next, Some(Ok(ShutdownRequest::Poweroff)));
    }
}
