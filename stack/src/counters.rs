//! Counters under the names that `nstat` shows on Linux.

/// Defines a block of counters: fields, and the name each is shown under.
macro_rules! counters {
    (
        $(#[$meta:meta])*
        pub struct $block:ident {
            $($(#[$doc:meta])* $field:ident = $name:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $block {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $block {
            /// Each counter's name and value.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$(($name, self.$field)),*].into_iter()
            }
        }
    };
}
pub(crate) use counters;

counters! {
    /// What the layers below TCP have counted.
    pub struct Counters {
        /// IP packets received, bad ones included.
        ip_in_receives = "IpInReceives",
        /// Dropped for a malformed header.
        ip_in_hdr_errors = "IpInHdrErrors",
        /// Dropped for an address that is not ours or cannot be a source.
        ip_in_addr_errors = "IpInAddrErrors",
        /// Dropped for a protocol that nobody speaks here.
        ip_in_unknown_protos = "IpInUnknownProtos",
        /// Dropped for want of room.
        ip_in_discards = "IpInDiscards",
        /// Given to a transport.
        ip_in_delivers = "IpInDelivers",
        /// Packets that transports asked to be sent.
        ip_out_requests = "IpOutRequests",
        /// Dropped on the way out, for want of room or an answer to ARP.
        ip_out_discards = "IpOutDiscards",
        /// Not sent: no route.
        ip_out_no_routes = "IpOutNoRoutes",
        /// Datagrams given up because fragments did not come in time.
        ip_reasm_timeout = "IpReasmTimeout",
        /// Fragments received.
        ip_reasm_reqds = "IpReasmReqds",
        /// Datagrams put together.
        ip_reasm_oks = "IpReasmOKs",
        /// Datagrams or fragments given up, for whatever reason.
        ip_reasm_fails = "IpReasmFails",
        /// Datagrams sent in fragments.
        ip_frag_oks = "IpFragOKs",
        /// Datagrams that could not be fragmented.
        ip_frag_fails = "IpFragFails",
        /// Fragments made.
        ip_frag_creates = "IpFragCreates",
        /// IP packets shorter than their header says.
        ip_ext_in_truncated_pkts = "IpExtInTruncatedPkts",
        /// IP packets received with congestion experienced.
        ip_ext_in_ce_pkts = "IpExtInCEPkts",
        /// ICMP messages received, bad ones included.
        icmp_in_msgs = "IcmpInMsgs",
        /// ICMP messages dropped as malformed.
        icmp_in_errors = "IcmpInErrors",
        /// ICMP messages with a wrong checksum.
        icmp_in_csum_errors = "IcmpInCsumErrors",
        /// Destination unreachable received.
        icmp_in_dest_unreachs = "IcmpInDestUnreachs",
        /// Time exceeded received.
        icmp_in_time_excds = "IcmpInTimeExcds",
        /// Parameter problem received.
        icmp_in_parm_probs = "IcmpInParmProbs",
        /// Echo requests received.
        icmp_in_echos = "IcmpInEchos",
        /// Echo replies received.
        icmp_in_echo_reps = "IcmpInEchoReps",
        /// ICMP messages sent.
        icmp_out_msgs = "IcmpOutMsgs",
        /// ICMP errors not sent: too many.
        icmp_out_rate_limit_global = "IcmpOutRateLimitGlobal",
        /// Destination unreachable sent.
        icmp_out_dest_unreachs = "IcmpOutDestUnreachs",
        /// Time exceeded sent.
        icmp_out_time_excds = "IcmpOutTimeExcds",
        /// Echo replies sent.
        icmp_out_echo_reps = "IcmpOutEchoReps",
        /// TCP segments with a wrong checksum.
        tcp_in_csum_errors = "TcpInCsumErrors",
        /// UDP datagrams delivered.
        udp_in_datagrams = "UdpInDatagrams",
        /// UDP datagrams to ports that nobody has.
        udp_no_ports = "UdpNoPorts",
        /// UDP datagrams dropped as malformed or for want of room.
        udp_in_errors = "UdpInErrors",
        /// UDP datagrams sent.
        udp_out_datagrams = "UdpOutDatagrams",
        /// UDP datagrams dropped because the socket's queue was full.
        udp_rcvbuf_errors = "UdpRcvbufErrors",
        /// UDP datagrams dropped because the device had no page left to keep them in.
        udp_mem_errors = "UdpMemErrors",
        /// UDP datagrams with a wrong checksum.
        udp_in_csum_errors = "UdpInCsumErrors",
        /// Frames dropped: not for us, or no protocol we know.
        ether_in_discards = "EtherInDiscards",
        /// ARP packets received.
        arp_in_pkts = "ArpInPkts",
        /// ARP packets dropped as malformed or implausible.
        arp_in_errors = "ArpInErrors",
        /// ARP packets in which another station claimed our address.
        arp_conflicts = "ArpConflicts",
        /// ARP requests sent.
        arp_out_requests = "ArpOutRequests",
        /// ARP replies sent.
        arp_out_replies = "ArpOutReplies",
    }
}
