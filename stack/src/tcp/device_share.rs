//! What a flow has in the device, and whether it may add to it: TCP Small Queues.

/// Most bytes of one flow in the device: Linux's `net.ipv4.tcp_limit_output_bytes`.
const LIMIT_BYTES: u32 = 4 << 20;

/// One flow's share of the device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeviceShare {
    in_device_bytes: u32,
}

impl DeviceShare {
    /// Payload bytes given to the device that it is not done with.
    pub(super) fn in_device_bytes(self) -> u32 {
        self.in_device_bytes
    }

    /// Counts bytes given to the device.
    pub(super) fn sent(&mut self, bytes: u32) {
        self.in_device_bytes = self.in_device_bytes.saturating_add(bytes);
    }

    /// Credits bytes the device is done with.
    pub(super) fn completed(&mut self, bytes: u32) {
        self.in_device_bytes = self.in_device_bytes.saturating_sub(bytes);
    }

    /// Whether new data may be given to the device. With nothing there it always may: no
    /// completion would come to try again.
    pub(super) fn may_transmit(self) -> bool {
        self.in_device_bytes == 0 || self.in_device_bytes < LIMIT_BYTES
    }
}

#[cfg(test)]
mod tests;
