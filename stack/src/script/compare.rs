//! Whether a packet is the one a script expects.

use super::{
    ast::{Ecn, OptionSpec, SegmentSpec},
    flow::Flow,
    live::LiveSegment,
    options::{Flavor, Plan},
};
use crate::wire::tcp::{Flags, Options};
use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt::Write;

/// Compares what the stack sent with what the script says. The error names the field, with its
/// value expected and got.
pub(super) fn segment(
    plan: &Plan,
    flow: &Flow,
    spec: &SegmentSpec,
    live: &LiveSegment,
) -> Result<(), &'static str> {
    let SegmentSpec {
        direction: _,
        ecn,
        ports,
        flags,
        seq,
        ack,
        window,
        urgent,
        options,
    } = spec;
    let own = plan.flavor == Flavor::Own;
    let header = &live.header;
    let ignored = if own { Flags::empty() } else { Flags::PSH };
    if *flags - ignored != header.flags - ignored {
        return Err("flags");
    }
    if ports.is_some_and(|ports| ports != (header.src_port, header.dst_port)) {
        return Err("ports");
    }
    let syn = flags.contains(Flags::SYN);
    if flow.local_to_script(header.seq, syn) != seq.start {
        return Err("sequence number");
    }
    if live.payload_bytes != seq.payload_bytes {
        return Err("length");
    }
    if flags.contains(Flags::ACK) && flow.peer_to_script(header.ack, syn) != ack.unwrap_or(0) {
        return Err("acknowledgment");
    }
    if let Some(window) = *window {
        let same = if own {
            header.window == window
        } else {
            (header.window == 0) == (window == 0)
        };
        if !same {
            return Err("window");
        }
    }
    if header.urgent != *urgent {
        return Err("urgent pointer");
    }
    if let Some(ecn) = ecn {
        let same = match ecn {
            Ecn::None => live.ecn == 0,
            Ecn::Ect1 => live.ecn == 1,
            Ecn::Ect0 => live.ecn == 2,
            Ecn::Ce => live.ecn == 3,
            Ecn::Ect01 => matches!(live.ecn, 1 | 2),
        };
        if !same {
            return Err("ECN codepoint");
        }
    }
    match options {
        Some(options) => compare_options(plan, flow, options, live, syn),
        None => Ok(()),
    }
}

/// Order and padding mean nothing; each option that is there on one side must be on the other.
fn compare_options(
    plan: &Plan,
    flow: &Flow,
    specs: &[OptionSpec],
    live: &LiveSegment,
    syn: bool,
) -> Result<(), &'static str> {
    let Options {
        mss,
        window_scale,
        sack_permitted,
        timestamps,
        sack,
    } = &live.header.options;
    let (mut spec_mss, mut spec_scale, mut spec_sack) = (None, None, &[][..]);
    let (mut spec_permitted, mut spec_timestamps) = (false, None);
    for spec in specs {
        match spec {
            OptionSpec::EndOfList | OptionSpec::Nop => {}
            OptionSpec::Mss(mss) => spec_mss = Some(*mss),
            OptionSpec::Sack(blocks) => spec_sack = blocks,
            OptionSpec::SackPermitted => spec_permitted = true,
            OptionSpec::Timestamps { value, echo } => spec_timestamps = Some((*value, *echo)),
            OptionSpec::WindowScale(shift) => spec_scale = Some(*shift),
        }
    }
    if *mss != spec_mss {
        return Err("option mss");
    }
    if *sack_permitted != spec_permitted {
        return Err("option sackOK");
    }
    let same_scale = match (window_scale, spec_scale) {
        (Some(a), Some(b)) => *a == b || plan.flavor != Flavor::Own,
        (a, b) => a.is_none() && b.is_none(),
    };
    if !same_scale {
        return Err("option wscale");
    }
    let script = |edge: u32| flow.peer_to_script(edge, syn);
    let blocks = sack
        .iter()
        .map(|block| (script(block.left), script(block.right)));
    if !blocks.eq(spec_sack.iter().copied()) {
        return Err("option sack");
    }
    match (timestamps, spec_timestamps) {
        (None, None) => Ok(()),
        (Some(live), Some((value, echo))) => {
            if live.echo != echo {
                return Err("option TS ecr");
            }
            let tick_us = plan.timestamp_tick_us;
            let Some(got) = flow.timestamp_to_script(live.value) else {
                return Ok(());
            };
            let off = u64::from(got.wrapping_sub(value).min(value.wrapping_sub(got)));
            if tick_us > 0 && off * tick_us > plan.tolerance_us + tick_us {
                return Err("option TS val");
            }
            Ok(())
        }
        _ => Err("option TS"),
    }
}

/// A packet as a script would write it.
pub(super) fn describe(flow: &Flow, live: &LiveSegment) -> String {
    let header = &live.header;
    let syn = header.flags.contains(Flags::SYN);
    let seq = flow.local_to_script(header.seq, syn);
    let mut text = format!(
        "{}{} {seq}:{}({})",
        ecn_text(live.ecn),
        flags_text(header.flags),
        seq.wrapping_add(live.payload_bytes),
        live.payload_bytes,
    );
    if header.flags.contains(Flags::ACK) {
        let ack = flow.peer_to_script(header.ack, syn);
        push(&mut text, format_args!(" ack {ack}"));
    }
    push(&mut text, format_args!(" win {}", header.window));
    let Options {
        mss,
        window_scale,
        sack_permitted,
        timestamps,
        sack,
    } = &header.options;
    let mut options = Vec::new();
    if let Some(mss) = mss {
        options.push(format!("mss {mss}"));
    }
    if *sack_permitted {
        options.push("sackOK".to_string());
    }
    if let Some(timestamps) = timestamps {
        let value = flow
            .timestamp_to_script(timestamps.value)
            .unwrap_or(timestamps.value);
        options.push(format!("TS val {value} ecr {}", timestamps.echo));
    }
    if let Some(shift) = window_scale {
        options.push(format!("wscale {shift}"));
    }
    if !sack.is_empty() {
        let blocks: Vec<_> = sack
            .iter()
            .map(|block| {
                let script = |edge| flow.peer_to_script(edge, syn);
                format!("{}:{}", script(block.left), script(block.right))
            })
            .collect();
        options.push(format!("sack {}", blocks.join(" ")));
    }
    if !options.is_empty() {
        push(&mut text, format_args!(" <{}>", options.join(",")));
    }
    text
}

/// What the script expects, as it might have written it.
pub(super) fn describe_spec(spec: &SegmentSpec) -> String {
    let SegmentSpec {
        direction: _,
        ecn,
        ports,
        flags,
        seq,
        ack,
        window,
        urgent: _,
        options,
    } = spec;
    let mut text = String::new();
    match ecn {
        None => {}
        Some(Ecn::None) => text.push_str("[noecn] "),
        Some(Ecn::Ect0) => text.push_str("[ect0] "),
        Some(Ecn::Ect1) => text.push_str("[ect1] "),
        Some(Ecn::Ect01) => text.push_str("[ect01] "),
        Some(Ecn::Ce) => text.push_str("[ce] "),
    }
    if let Some((from, to)) = ports {
        push(&mut text, format_args!("{from} > {to} "));
    }
    push(
        &mut text,
        format_args!(
            "{} {}:{}({})",
            flags_text(*flags),
            seq.start,
            seq.start.wrapping_add(seq.payload_bytes),
            seq.payload_bytes
        ),
    );
    if let Some(ack) = ack {
        push(&mut text, format_args!(" ack {ack}"));
    }
    if let Some(window) = window {
        push(&mut text, format_args!(" win {window}"));
    }
    let Some(options) = options else {
        text.push_str(" <...>");
        return text;
    };
    let options: Vec<_> = options
        .iter()
        .filter_map(|option| match option {
            OptionSpec::EndOfList | OptionSpec::Nop => None,
            OptionSpec::Mss(mss) => Some(format!("mss {mss}")),
            OptionSpec::Sack(blocks) => {
                let blocks: Vec<_> = blocks.iter().map(|(l, r)| format!("{l}:{r}")).collect();
                Some(format!("sack {}", blocks.join(" ")))
            }
            OptionSpec::SackPermitted => Some("sackOK".to_string()),
            OptionSpec::Timestamps { value, echo } => Some(format!("TS val {value} ecr {echo}")),
            OptionSpec::WindowScale(shift) => Some(format!("wscale {shift}")),
        })
        .collect();
    if !options.is_empty() {
        push(&mut text, format_args!(" <{}>", options.join(",")));
    }
    text
}

fn push(text: &mut String, what: core::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = text.write_fmt(what);
}

fn ecn_text(ecn: u8) -> &'static str {
    match ecn {
        1 => "[ect1] ",
        2 => "[ect0] ",
        3 => "[ce] ",
        _ => "",
    }
}

fn flags_text(flags: Flags) -> String {
    let letters = [
        (Flags::FIN, 'F'),
        (Flags::SYN, 'S'),
        (Flags::RST, 'R'),
        (Flags::PSH, 'P'),
        (Flags::URG, 'U'),
        (Flags::ECE, 'E'),
        (Flags::CWR, 'W'),
        (Flags::ACK, '.'),
    ];
    let text: String = letters
        .iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .map(|(_, letter)| *letter)
        .collect();
    if text.is_empty() {
        "-".to_string()
    } else {
        text
    }
}

#[cfg(test)]
mod tests;
