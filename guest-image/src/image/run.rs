//! The one loop.

use super::{
    clock,
    console::{self, Output},
    crash, heap, idle,
    interrupts::{self, Source},
    nic::Nic,
    pc, power, random, xen,
};
use core::fmt::{self, Write};
use paceline_driver::page::PagePool;
use paceline_guest::{
    cmdline::Options,
    executor::{Executor, Timers},
    iperf3,
    memory::PAGE_BYTES,
    shell::{self, Command, Shell},
};
use paceline_stack::{
    device::Device,
    net::Net,
    stack::{Config, Stack},
    tcp,
    time::Instant,
};

/// Runs the guest, for ever: events, the stack, tasks, and rest.
pub(crate) fn run(options: &Options, xen: Option<&xen::Guest>, pool: PagePool) -> ! {
    let mut executor = Executor::new();
    let (spawner, timers) = (executor.spawner(), Timers::new());
    let nic = match xen {
        Some(xen) => {
            xen.heed_toolstack(&spawner, &timers);
            Some(xen.nic(pool, &spawner, &timers))
        }
        None => pc::nic(&options.virtio_mmio, pool),
    };
    let net = start_network(options, nic, pool);
    if let Some(net) = &net {
        spawner.spawn(iperf3::run(net.clone(), timers.clone()));
    }
    let mut announced = false;
    let mut shell = Shell::new();
    console::enable_input();
    // The console takes everything it is given.
    let _ = shell.prompt(&mut Output);
    loop {
        let mut input = interrupts::take().has(Source::Serial);
        let mut more = false;
        if let Some(xen) = xen {
            let dispatched = xen.dispatch();
            input |= dispatched.console;
            more |= dispatched.more;
        }
        if input {
            while let Some(byte) = console::read() {
                let _ = type_in(&mut shell, byte, net.as_ref(), pool);
            }
        }
        let now = clock::now();
        let polled = net.as_ref().map(|net| net.poll(now));
        timers.advance(now);
        more |= executor.run();
        if let Some(net) = &net
            && !announced
        {
            announced = announce(net);
        }
        more |= net.as_ref().is_some_and(Net::poll_wanted);
        if more || polled.is_some_and(|polled| polled.more) {
            continue;
        }
        let deadlines = [
            polled.and_then(|polled| polled.deadline),
            timers.next_deadline(),
            net.as_ref().and_then(|net| device_deadline(net, now)),
        ];
        let has_slept = idle::wait(deadlines.into_iter().flatten().min(), || {
            xen.is_some_and(xen::Guest::has_events)
                || net
                    .as_ref()
                    .is_some_and(|net| net.with(|stack| stack.device_mut().arm()))
        });
        if let (Some(net), true) = (&net, has_slept) {
            net.with(Stack::slept);
        }
    }
}

/// Says that the servers can be reached, once that is so.
fn announce(net: &Net<Nic>) -> bool {
    let (up, address) = net.with(|stack| (stack.device().link_up(), stack.address()));
    if up {
        log::info!("paceline ready: {address}, iperf3 on port {}", iperf3::PORT);
    }
    up
}

/// When the NIC itself wants to be polled.
fn device_deadline(net: &Net<Nic>, now: Instant) -> Option<Instant> {
    net.with(|stack| stack.device().poll_within())
        .map(|span| now + span)
}

/// Sets up the stack, if there is a NIC and an address for it.
fn start_network(options: &Options, nic: Option<Nic>, pool: PagePool) -> Option<Net<Nic>> {
    let Some(nic) = nic else {
        log::warn!("no NIC found");
        return None;
    };
    let Some(ip) = &options.ip else {
        log::warn!("no address: expected ip= on the command line");
        return None;
    };
    let config = Config {
        address: ip.address,
        prefix: ip.prefix_len,
        gateway: ip.gateway,
        secret: random::secret(),
    };
    match Stack::new(nic, &config) {
        Ok(mut stack) => {
            let config = stack.tcp_and_device().0.config_mut();
            config.clone_from(&options.tcp);
            limit_buffers(config, pool);
            Some(Net::new(stack))
        }
        Err(error) => super::refuse(&error),
    }
}

/// Limits buffers so that one connection cannot have more than half of the NIC's pages: pages are
/// filled by half at worst.
fn limit_buffers(config: &mut tcp::Config, pool: PagePool) {
    let most = pool.pages() as u64 * PAGE_BYTES / 4;
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    for bytes in [
        &mut config.max_sndbuf_bytes,
        &mut config.max_rcvbuf_bytes,
        &mut config.sndbuf_bytes,
        &mut config.rcvbuf_bytes,
    ] {
        *bytes = most.min(*bytes);
    }
}

/// Gives the shell a byte and does what it says.
fn type_in(shell: &mut Shell, byte: u8, net: Option<&Net<Nic>>, pool: PagePool) -> fmt::Result {
    let Some(command) = shell.input(byte, &mut Output)? else {
        return Ok(());
    };
    match command {
        Command::CrashExecute => crash::execute(),
        Command::CrashFault => crash::fault(),
        Command::CrashPanic => panic!("asked for on the console"),
        Command::CrashStack => {
            crash::stack(0);
        }
        Command::CrashWrite => crash::write(),
        Command::Free => {
            let heap::Stats { used, free } = heap::stats();
            let free_pages = pool.available();
            writeln!(
                Output,
                "heap      {:8} KiB used {:8} KiB free\nNIC pages {:8} used     {free_pages:8} free",
                used >> 10,
                free >> 10,
                pool.pages() - free_pages,
            )?;
        }
        Command::Help => shell::help(&mut Output)?,
        Command::Ip => match net {
            Some(net) => net.with(|stack| {
                writeln!(Output, "{}", stack.address())?;
                stack.device().describe(&mut Output)
            })?,
            None => writeln!(Output, "no network")?,
        },
        Command::Nstat => match net {
            Some(net) => net.with(|stack| {
                let mut counters = stack.nstat().filter(|(_, value)| *value != 0);
                counters.try_for_each(|(name, value)| writeln!(Output, "{name:32} {value}"))
            })?,
            None => writeln!(Output, "no network")?,
        },
        Command::PowerOff => power::off(),
        Command::Reboot => power::reboot(),
        Command::Ss { info } => match net {
            Some(net) => {
                net.with(|stack| shell::ss(stack.tcp().connections(), info, &mut Output))?;
            }
            None => writeln!(Output, "no network")?,
        },
        Command::Sysctl(argument) => match net {
            Some(net) => net.with(|stack| {
                let config = stack.tcp_and_device().0.config_mut();
                let bound = |config: &mut tcp::Config| limit_buffers(config, pool);
                shell::sysctl(config, &argument, bound, &mut Output)
            })?,
            None => writeln!(Output, "no network")?,
        },
        Command::Uptime => {
            let now = clock::now();
            writeln!(Output, "{now} s")?;
        }
    }
    shell.prompt(&mut Output)
}
