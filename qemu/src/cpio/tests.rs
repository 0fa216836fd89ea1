use super::*;

/// One entry as a reader sees it.
#[derive(Debug, PartialEq)]
struct Entry {
    path: String,
    mode: u32,
    links: u32,
    device: (u32, u32),
    content: Vec<u8>,
}

/// Reads an archive by the format's description, up to its trailer.
fn read(mut bytes: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    loop {
        assert_eq!(&bytes[..6], b"070701");
        let field = |index: usize| {
            let text = std::str::from_utf8(&bytes[6 + index * 8..14 + index * 8]).unwrap();
            u32::from_str_radix(text, 16).unwrap()
        };
        let (content_len, path_len) = (field(6) as usize, field(11) as usize);
        let path = std::str::from_utf8(&bytes[110..110 + path_len - 1])
            .unwrap()
            .to_owned();
        assert_eq!(bytes[110 + path_len - 1], 0);
        let start = (110 + path_len).next_multiple_of(4);
        if path == "TRAILER!!!" {
            return entries;
        }
        entries.push(Entry {
            path,
            mode: field(1),
            links: field(4),
            device: (field(9), field(10)),
            content: bytes[start..start + content_len].to_vec(),
        });
        bytes = &bytes[(start + content_len).next_multiple_of(4)..];
    }
}

#[test]
fn an_archive_reads_back() {
    let mut archive = Archive::new();
    archive.file("etc/xen/xl.conf", false, b"hello");
    archive.file("init", true, b"");
    archive.link("bin", "usr/bin");
    archive.device("dev/console", 5, 1);
    let entries = read(&archive.finish());
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| (entry.path.as_str(), entry.mode))
        .collect();
    assert_eq!(
        seen,
        [
            ("etc", 0o040_755),
            ("etc/xen", 0o040_755),
            ("etc/xen/xl.conf", 0o100_644),
            ("init", 0o100_755),
            ("bin", 0o120_777),
            ("dev", 0o040_755),
            ("dev/console", 0o020_600),
        ]
    );
    assert_eq!(entries[0].links, 2);
    assert_eq!(entries[2].links, 1);
    assert_eq!(entries[2].content, b"hello");
    assert_eq!(entries[4].content, b"usr/bin");
    assert_eq!(entries[6].device, (5, 1));
}

#[test]
fn archives_can_be_concatenated() {
    let archive = Archive::new().finish();
    assert_eq!(archive.len() % BLOCK_BYTES, 0);
}

#[test]
fn the_first_entry_of_a_path_stays() {
    let mut archive = Archive::new();
    archive.file("a", false, b"first");
    archive.file("a", false, b"second");
    assert!(archive.contains("a"));
    let entries = read(&archive.finish());
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].content, b"first");
}
