use super::*;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec as AllocVec;

const EVERYTHING: u64 = u64::MAX;

fn address<T: ?Sized>(of: &T) -> u64 {
    ptr::from_ref(of).expose_provenance() as u64
}

/// The parts as a loader would lay them out; the info points to the others.
struct Loader {
    info: Box<HvmStartInfo>,
    memmap: AllocVec<HvmMemmapEntry>,
    cmdline: AllocVec<u8>,
}

impl Loader {
    fn new(memmap: &[(u64, u64, u32)], cmdline: &[u8]) -> Self {
        let memmap: AllocVec<_> = memmap
            .iter()
            .map(|&(addr, size, kind)| HvmMemmapEntry {
                addr,
                size,
                kind,
                reserved: 0,
            })
            .collect();
        let cmdline = cmdline.to_vec();
        let info = Box::new(HvmStartInfo {
            magic: MAGIC,
            version: 1,
            cmdline_paddr: address(&cmdline[..]),
            rsdp_paddr: 0xe0000,
            memmap_paddr: address(&memmap[..]),
            memmap_entries: memmap.len() as u32,
            ..HvmStartInfo::default()
        });
        Self {
            info,
            memmap,
            cmdline,
        }
    }

    fn parse(&self) -> Result<StartInfo, StartInfoError> {
        self.parse_below(EVERYTHING)
    }

    fn parse_below(&self, mapped_end: u64) -> Result<StartInfo, StartInfoError> {
        // The info points to them.
        core::hint::black_box((&self.memmap, &self.cmdline));
        // SAFETY: the info and what it points to is memory of this process, unless a test put
        // an address out of `mapped_end` there.
        unsafe { StartInfo::parse(address(&*self.info), mapped_end) }
    }
}

#[test]
fn layouts_are_those_of_the_public_header() {
    assert_eq!(size_of::<HvmStartInfo>(), 56);
    assert_eq!(core::mem::offset_of!(HvmStartInfo, memmap_paddr), 40);
    assert_eq!(size_of::<HvmMemmapEntry>(), 24);
}

#[test]
fn all_parts_are_read() {
    let loader = Loader::new(
        &[(0, 0xa0000, 1), (0x10_0000, 0, 1), (0xfc00_0000, 0x1000, 3)],
        b"ip=10.0.0.2 loglevel=7\0ignored",
    );
    let info = loader.parse().unwrap();
    assert_eq!(info.command_line(), "ip=10.0.0.2 loglevel=7");
    assert!(!info.command_line_truncated && !info.memory_map_truncated);
    assert_eq!(info.rsdp_paddr, Some(0xe0000));
    let kinds: AllocVec<_> = info.memory_map.iter().map(|r| (r.start, r.kind)).collect();
    assert_eq!(
        kinds,
        [
            (0, MemoryKind::Ram),
            (0xfc00_0000, MemoryKind::AcpiReclaimable)
        ]
    );
}

#[test]
fn missing_parts_are_none() {
    let mut loader = Loader::new(&[(0, 0x1000, 1)], b"\0");
    loader.info.cmdline_paddr = 0;
    loader.info.rsdp_paddr = 0;
    loader.info.version = 0;
    let info = loader.parse().unwrap();
    assert_eq!(info.command_line(), "");
    assert_eq!(info.rsdp_paddr, None);
    assert!(info.memory_map.is_empty());
}

#[test]
fn hostile_addresses_are_refused_unread() {
    let limit = 1 << 47;
    let mut loader = Loader::new(&[(0, 0x1000, 1)], b"x\0");
    loader.info.memmap_paddr = u64::MAX - 10;
    assert!(matches!(
        loader.parse_below(limit),
        Err(StartInfoError::NotMapped {
            what: "memory map",
            ..
        })
    ));

    let mut loader = Loader::new(&[(0, 0x1000, 1)], b"x\0");
    loader.info.memmap_entries = u32::MAX;
    loader.info.memmap_paddr = limit - 100;
    assert!(loader.parse_below(limit).is_err());

    let mut loader = Loader::new(&[(0, 0x1000, 1)], b"x\0");
    loader.info.cmdline_paddr = limit;
    let error = loader.parse_below(limit).unwrap_err();
    assert_eq!(
        format!("{error}"),
        "command line: 1 bytes at 0x800000000000 are not mapped"
    );

    // SAFETY: nothing lies below the limit, so nothing is read.
    assert!(unsafe { StartInfo::parse(0, limit) }.is_err());
    // SAFETY: likewise.
    assert!(unsafe { StartInfo::parse(u64::MAX - 3, limit) }.is_err());
}

#[test]
fn a_wrong_magic_is_named() {
    let mut loader = Loader::new(&[], b"\0");
    loader.info.magic = 0x2bad_b002;
    assert_eq!(
        loader.parse().unwrap_err(),
        StartInfoError::BadMagic(0x2bad_b002)
    );
}

#[test]
fn excess_is_cut_and_said() {
    let mut line = AllocVec::from([b'a'; MAX_COMMAND_LINE_BYTES + 10]);
    line.push(0);
    let regions: AllocVec<_> = (0..200).map(|i| (i << 20, 4096, 1)).collect();
    let info = Loader::new(&regions, &line).parse().unwrap();
    assert!(info.command_line_truncated && info.memory_map_truncated);
    assert_eq!(info.command_line().len(), MAX_COMMAND_LINE_BYTES);
    assert_eq!(info.memory_map.len(), MAX_MEMORY_REGIONS);
}

#[test]
fn regions_past_the_address_space_and_bad_utf8_are_cut() {
    let info = Loader::new(&[(u64::MAX - 10, 4096, 77)], b"ok=1 \xff=2\0")
        .parse()
        .unwrap();
    assert_eq!(
        info.memory_map[..],
        [MemoryRegion {
            start: u64::MAX - 10,
            end: u64::MAX,
            kind: MemoryKind::Other(77)
        }]
    );
    assert_eq!(info.command_line(), "ok=1 ");
}
