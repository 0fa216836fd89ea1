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
mod tests;
