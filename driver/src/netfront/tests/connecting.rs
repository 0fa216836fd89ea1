use super::*;
use alloc::string::ToString;

#[test]
fn a_backend_as_linux_s_gives_all_features() {
    let mut rig = Rig::linux();
    assert_eq!(
        rig.device().features(),
        Features {
            mtu_bytes: 1500,
            scatter_gather: true,
            tso4: true,
            tso6: true,
            tx_checksum6: true,
            split_event_channels: true,
        }
    );
    assert_eq!(rig.device().mac(), [0x00, 0x16, 0x3e, 1, 2, 3]);
    assert!(rig.device().link_up());
    assert_eq!(rig.device().rx_posted(), 256);
    assert_eq!(rig.host.take_sends(), [1, 1], "both channels are kicked");
    let frontend = rig.host.frontend().to_string();
    let read = |key: &str| rig.store.read(alloc::format!("{frontend}/{key}"));
    for feature in [
        "request-rx-copy",
        "feature-rx-notify",
        "feature-sg",
        "feature-gso-tcpv4",
        "feature-gso-tcpv6",
        "feature-ipv6-csum-offload",
    ] {
        assert_eq!(read(feature).as_deref(), Some("1"), "{feature}");
    }
    for absent in [
        "feature-no-csum-offload",
        "event-channel",
        "multi-queue-num-queues",
    ] {
        assert_eq!(read(absent), None, "{absent}");
    }
}

#[test]
fn a_backend_as_qemu_s_gives_none() {
    let mut rig = Rig::qemu();
    assert_eq!(rig.device().features(), Features::default());
    assert_eq!(
        rig.host.take_sends()[0],
        1,
        "the one channel is kicked once"
    );
}

#[test]
fn large_segments_need_scatter_gather_and_a_checksum() {
    for (keys, tso4, tso6) in [
        (
            &["feature-rx-copy", "feature-gso-tcpv4", "feature-gso-tcpv6"][..],
            false,
            false,
        ),
        (
            &["feature-rx-copy", "feature-sg", "feature-gso-tcpv6"],
            false,
            false,
        ),
        (
            &["feature-rx-copy", "feature-sg", "feature-gso-tcpv4"],
            true,
            false,
        ),
        (
            &[
                "feature-rx-copy",
                "feature-sg",
                "feature-gso-tcpv6",
                "feature-ipv6-csum-offload",
            ],
            false,
            true,
        ),
    ] {
        let mut features = BackendFeatures::linux();
        features.keys = keys.into();
        let mut rig = Rig::connected(features);
        let got = rig.device().features();
        assert_eq!((got.tso4, got.tso6), (tso4, tso6), "{keys:?}");
    }
}

#[test]
fn a_transaction_in_conflict_is_repeated() {
    let mut rig = Rig::new(BackendFeatures::linux());
    rig.store.fail_commits(3);
    assert_eq!(rig.connect(), Ok(()));
    assert_eq!(rig.store.open_transactions(), 0);
}

#[test]
fn a_backend_without_rx_copy_is_refused() {
    let mut features = BackendFeatures::linux();
    features.keys.retain(|&key| key != "feature-rx-copy");
    let mut rig = Rig::new(features);
    let before = rig.inventory();
    assert_eq!(rig.connect(), Err(ConnectError::NoRxCopy));
    assert_eq!(rig.inventory(), before);
}

#[test]
fn the_mac_may_be_the_backend_s_and_has_to_be_one() {
    let mut rig = Rig::new(BackendFeatures::linux());
    let (ours, theirs) = (
        alloc::format!("{}/mac", rig.host.frontend()),
        alloc::format!("{}/mac", rig.host.backend()),
    );
    rig.store.remove(&ours);
    assert_eq!(rig.connect(), Err(ConnectError::Mac { found: None }));
    rig.store.write(&theirs, "00:16:3E:aa:bb:0c");
    assert_eq!(rig.connect(), Ok(()));
    assert_eq!(rig.device().mac(), [0x00, 0x16, 0x3e, 0xaa, 0xbb, 0x0c]);
    for wrong in [
        "",
        "00:16:3e:01:02",
        "00:16:3e:01:02:03:04",
        "+0:16:3e:01:02:03",
        "0016:3e:01:02:03",
    ] {
        rig.follow_and_close();
        rig.store.write(&ours, wrong);
        let found = Some(wrong.to_string());
        assert_eq!(rig.connect(), Err(ConnectError::Mac { found }), "{wrong:?}");
    }
}

#[test]
fn numbers_are_parsed_strictly_and_clamped() {
    for (mtu, features, expected) in [
        ("9000", BackendFeatures::linux(), 9000),
        ("9000", BackendFeatures::qemu(), 4080),
        ("0", BackendFeatures::linux(), 68),
        ("4294967295", BackendFeatures::linux(), 65_521),
        ("99999999999", BackendFeatures::linux(), 1500),
        ("-1", BackendFeatures::linux(), 1500),
        ("1500 ", BackendFeatures::linux(), 1500),
    ] {
        let mut rig = Rig::new(features);
        let path = alloc::format!("{}/mtu", rig.host.frontend());
        rig.store.write(path, mtu);
        assert_eq!(rig.connect(), Ok(()));
        assert_eq!(rig.device().features().mtu_bytes, expected, "{mtu:?}");
    }
    let mut rig = Rig::new(BackendFeatures::linux());
    let path = alloc::format!("{}/backend-id", rig.host.frontend());
    rig.store.write(path, 0x7ff0);
    assert_eq!(
        rig.connect(),
        Err(ConnectError::BackendId { found: 0x7ff0 })
    );
}

#[test]
fn a_backend_id_that_comes_late_is_waited_for() {
    let mut rig = Rig::new(BackendFeatures::linux());
    let path = alloc::format!("{}/backend-id", rig.host.frontend());
    rig.store.remove(&path);
    let mut rounds = 0;
    let Rig {
        store,
        client,
        host,
        vif,
        device,
        ..
    } = &mut rig;
    let step = || {
        rounds += 1;
        if rounds == 50 {
            store.write(&path, DRIVER_DOMAIN);
        }
        host.step();
    };
    let result = block_on(store, client, step, vif.connect(device));
    assert_eq!(result, Some(Ok(())));
    assert!(rounds >= 50);
}

#[test]
fn a_connection_that_is_given_up_and_repeated_starts_over() {
    let mut rig = Rig::new(BackendFeatures::linux());
    let before = rig.inventory();
    let Rig {
        store,
        client,
        host,
        vif,
        device,
        ..
    } = &mut rig;
    // The backend says what it can do, and then nothing more.
    let mut rounds = 0;
    let step = || {
        rounds += 1;
        if rounds < 40 {
            host.step();
        }
    };
    let frontend_connected = |store: &FakeStore| {
        store.read("/local/domain/1/device/vif/0/state").as_deref() == Some("4")
    };
    let stuck = {
        let mut future = core::pin::pin!(vif.connect(device));
        let mut steps = step;
        block_on(
            store,
            client,
            || {
                if !frontend_connected(store) {
                    steps();
                }
            },
            future.as_mut(),
        )
    };
    assert_eq!(stuck, None);
    assert_eq!(rig.connect(), Ok(()));
    rig.follow_and_close();
    assert_eq!(rig.inventory(), before);
}

#[test]
fn a_backend_that_closes_is_followed_and_gives_everything_back() {
    let mut rig = Rig::new(BackendFeatures::linux());
    let before = rig.inventory();
    for round in 0..200 {
        assert_eq!(rig.connect(), Ok(()), "round {round}");
        rig.host.poll();
        let payload = rig.slices(&pattern(3000, round), 1400);
        let header = tcp4_header();
        assert_eq!(
            rig.transmit(&header, &payload[..1], TxOffload::None, 5),
            Ok(())
        );
        rig.netback().send(Frame::plain(pattern(900, round)));
        drop(payload);
        rig.flush();
        rig.host.poll();
        drop(rig.receive_all());
        rig.host.close();
        // What the backend has mapped when we close comes back once it lets go.
        assert_eq!(rig.follow_backend(), XenbusState::Closing);
        rig.now_us += RETRY_US;
        rig.flush();
        rig.complete();
        assert_eq!(rig.inventory(), before, "round {round}");
        assert!(!rig.device().link_up());
    }
    assert_eq!(rig.statistics().connects, 200);
    assert_eq!(rig.statistics().grants_leaked, 0);
}

#[test]
fn what_was_on_the_ring_is_credited_once_when_the_connection_ends() {
    let mut rig = Rig::linux();
    let payload = rig.slices(&pattern(1000, 0), 400);
    let header = tcp4_header();
    assert_eq!(rig.transmit(&header, &payload, TxOffload::None, 9), Ok(()));
    rig.flush();
    rig.host.poll();
    rig.now_us += 250;
    rig.host.close();
    rig.follow_backend();
    rig.complete();
    rig.complete();
    let total: u32 = rig
        .completions
        .iter()
        .map(|completion| completion.bytes)
        .sum();
    assert_eq!(total, 1000);
    assert!(
        rig.completions
            .iter()
            .all(|completion| completion.owner == 9)
    );
    assert!(
        rig.completions
            .iter()
            .all(|completion| completion.held_us == 250)
    );
    assert_eq!(
        rig.transmit(&header, &[], TxOffload::None, 9),
        Err(TxError::Down)
    );
}

/// QubesOS/qubes-issues#8237: the backend's domain dies, and the toolstack names another.
#[test]
fn another_backend_may_be_named_at_any_time() {
    // After so many rounds of a backend that does less than it should.
    for silent_from in [0, 1, 3, 10, 30, 100] {
        let mut rig = Rig::new(BackendFeatures::linux());
        let before = rig.inventory();
        let frontend = rig.host.frontend().to_string();
        let result = {
            let Rig {
                store,
                client,
                host,
                vif,
                device,
                ..
            } = &mut rig;
            let mut rounds = 0;
            let step = || {
                rounds += 1;
                if rounds <= silent_from {
                    host.step();
                } else if rounds == silent_from + 100 {
                    store.write(alloc::format!("{frontend}/backend-id"), 9);
                    store.write(
                        alloc::format!("{frontend}/backend"),
                        "/local/domain/9/backend/nic/1/0",
                    );
                }
            };
            let connecting = async {
                vif.connect(device).await?;
                Ok(vif.backend_closing().await?)
            };
            block_on(store, client, step, connecting)
        };
        let expected = [Err(ConnectError::Moved), Ok(XenbusState::Unknown)];
        let result = result.expect("not stuck");
        assert!(expected.contains(&result), "{silent_from}: {result:?}");
        rig.device().close();
        rig.now_us += RETRY_US;
        rig.flush();
        let after = rig.inventory();
        // What the old backend has mapped still is not used again.
        assert_eq!(after.grefs as usize + after.mapped, before.grefs as usize);
        assert_eq!(after.ports, before.ports);
    }
}

#[test]
fn a_device_that_is_removed_is_not_waited_for() {
    for removed_at in [0, 1, 3, 10, 100] {
        let mut rig = Rig::new(BackendFeatures::linux());
        let path = alloc::format!("{}/backend-id", rig.host.frontend());
        rig.store.remove(&path);
        let Rig {
            store,
            client,
            host,
            vif,
            device,
            ..
        } = &mut rig;
        let mut rounds = 0;
        let step = || {
            if rounds == removed_at {
                host.remove();
            }
            rounds += 1;
        };
        let result = block_on(store, client, step, vif.connect(device));
        assert_eq!(result, Some(Err(ConnectError::Moved)), "{removed_at}");
    }
}

#[test]
fn a_device_that_is_removed_is_not_written_to() {
    let mut rig = Rig::linux();
    rig.host.remove();
    assert_eq!(rig.follow_backend(), XenbusState::Unknown);
    let frontend = rig.host.frontend().to_string();
    assert_eq!(
        rig.store.list(&frontend),
        Vec::<alloc::string::String>::new()
    );
    assert_eq!(rig.store.read(&frontend), None);
}

#[test]
fn a_closed_device_takes_any_call() {
    let mut rig = Rig::new(BackendFeatures::linux());
    for _ in 0..2 {
        let device = rig.device.get_mut();
        device.start();
        device.flush(1);
        assert!(device.receive().is_none());
        assert!(!device.arm());
        device.complete(1, &mut |_| unreachable!());
        assert_eq!(device.poll_within_us(), None);
        assert_eq!((device.tx_room(), device.rx_posted()), (0, 0));
        device.close();
        device.close();
    }
}

#[test]
fn opening_fails_cleanly_whatever_is_short() {
    for pages in 0..10 {
        let mut rig = Rig::with_pool(BackendFeatures::linux(), pages);
        let before = rig.inventory();
        assert_eq!(rig.connect(), Err(ConnectError::Open(OpenError::Pages)));
        assert_eq!(rig.inventory(), before, "{pages} pages");
    }
    let mut rig = Rig::new(BackendFeatures::linux());
    let before = rig.inventory();
    for (refused, errno) in [(0, Errno::ENOSPC), (1, Errno::ENOSPC)] {
        // The first call is let pass, the second fails.
        if refused == 1 {
            let port = rig.xen.evtchn_alloc_unbound(DomId(3)).unwrap();
            rig.xen.evtchn_close(port).unwrap();
        }
        rig.xen.fail_next("evtchn_alloc_unbound", errno);
        assert_eq!(
            rig.connect(),
            Err(ConnectError::Open(OpenError::Channel(errno)))
        );
        assert_eq!(rig.inventory(), before);
    }
}

#[test]
fn every_device_is_listed_by_number() {
    let rig = Rig::new(BackendFeatures::linux());
    for name in ["10", "2", "x"] {
        rig.store
            .write(alloc::format!("device/vif/{name}/state"), 1);
    }
    let list = block_on(&rig.store, &rig.client, || {}, Vif::list(&rig.client));
    let expected = ["device/vif/0", "device/vif/2", "device/vif/10"].map(ToString::to_string);
    assert_eq!(list, Some(Ok(expected.into())));
}

impl Rig {
    /// Has the backend close, if it is connected, and follows.
    fn follow_and_close(&mut self) {
        if self.host.netback().is_some() {
            self.host.close();
            self.follow_backend();
        }
        self.now_us += RETRY_US;
        self.flush();
    }
}
