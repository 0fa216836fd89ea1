use super::*;

/// The test program itself: a dynamic 64-bit executable with sections.
fn own_image() -> Vec<u8> {
    std::fs::read(std::env::current_exe().unwrap()).unwrap()
}

#[test]
fn needed_libraries_are_named() {
    let names = needed(&own_image()).unwrap();
    assert!(
        names.iter().any(|name| name.starts_with("libc.so")),
        "{names:?}"
    );
}

#[test]
fn what_is_no_elf_file_needs_nothing() {
    assert!(needed(b"#!/bin/sh\n").unwrap().is_empty());
}

#[test]
fn a_stripped_image_keeps_its_segments_and_loses_its_sections() {
    let image = own_image();
    let stripped = strip(&image).unwrap();
    assert!(stripped.len() < image.len());
    let header = FileHeader64::<Endianness>::parse(&*stripped).unwrap();
    let endian = header.endian().unwrap();
    assert!(
        header
            .section_headers(endian, &*stripped)
            .unwrap()
            .is_empty()
    );
    let before = FileHeader64::<Endianness>::parse(&*image).unwrap();
    let ranges = |header: &FileHeader64<Endianness>, bytes: &[u8]| -> Vec<(u64, u64)> {
        header
            .program_headers(endian, bytes)
            .unwrap()
            .iter()
            .map(|segment| segment.file_range(endian))
            .collect()
    };
    assert_eq!(ranges(header, &stripped), ranges(before, &image));
    let code = header.e_entry.get(endian);
    assert_eq!(code, before.e_entry.get(endian));
}

#[test]
fn images_that_end_too_early_are_refused() {
    let image = own_image();
    assert!(strip(&image[..4_096]).is_err());
    assert!(strip(b"short").is_err());
}
