//! Counters, named as `ethtool -S` would name them.

macro_rules! statistics {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a device has done and met with since it was made.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Statistics {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Statistics {
            /// Every counter with its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

statistics! {
    /// Connections made.
    connects,
    /// Breaches of netif's rules by the backend, each the end of a connection.
    violations,
    /// Frames put on the ring.
    tx_packets,
    /// Their bytes.
    tx_bytes,
    /// Ring slots they took, extras included.
    tx_slots,
    /// Frames for the backend to cut into segments.
    tx_gso_packets,
    /// Frames for the backend to complete the checksum of.
    tx_csum_blank,
    /// Frames copied into one page or slot, being small or because the backend takes one slot only.
    tx_copied,
    /// Frames refused for want of ring slots: the caller keeps and repeats them.
    tx_full,
    /// Frames refused for want of a page or grant reference, or because too many requests are about
    /// one page.
    tx_no_buffer,
    /// Frames refused because the device is not connected.
    tx_down,
    /// Frames refused because they break a limit.
    tx_unsendable,
    /// Slots answered.
    tx_responses,
    /// Slots answered with an error.
    tx_errors,
    /// Slots of frames that the backend dropped.
    tx_dropped,
    /// Events sent for the transmit ring.
    tx_notifies,
    /// Frames received.
    rx_packets,
    /// Their bytes.
    rx_bytes,
    /// Ring slots they took, extras included.
    rx_slots,
    /// Frames made of several TCP segments.
    rx_gso_packets,
    /// Frames whose checksum needs no verifying.
    rx_csum_good,
    /// Frames in which the backend reported an error.
    rx_errors,
    /// Frames shorter than an Ethernet header.
    rx_length_errors,
    /// Large segments whose headers are not what their type says.
    rx_gso_mismatch,
    /// Frames dropped because their pages were needed to receive at all.
    rx_no_buffer,
    /// Frames dropped because the backend had a page of theirs mapped still.
    rx_still_mapped,
    /// Times that the ring could not be filled for want of a page or grant reference.
    rx_refill_failures,
    /// Events sent for the receive ring.
    rx_notifies,
    /// Grants that the backend was still using when they were to end.
    grants_deferred,
    /// Of those, how many have ended since.
    grants_reclaimed,
    /// Grants given up for lack of room to remember them, with their pages.
    grants_leaked,
}
