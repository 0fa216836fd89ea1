//! What the rig needs of ELF files: needed libraries, a module's dependencies, and the part of
//! an image that is loaded.

use anyhow::{Context, Result, bail};
use object::{
    Endianness, Object, ObjectSection,
    elf::{DT_NEEDED, FileHeader64, PT_DYNAMIC, PT_LOAD, PT_NOTE},
    read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader},
};

const E_SHOFF: std::ops::Range<usize> = 40..48;
const E_SHENTSIZE_SHNUM_SHSTRNDX: std::ops::Range<usize> = 58..64;

/// The names of the shared libraries a dynamic executable or library needs. Anything that is not
/// a 64-bit ELF file needs none.
pub(crate) fn needed(bytes: &[u8]) -> Result<Vec<String>> {
    let Ok(header) = FileHeader64::<Endianness>::parse(bytes) else {
        return Ok(Vec::new());
    };
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let mut names = Vec::new();
    for segment in header.program_headers(endian, bytes)? {
        if segment.p_type(endian) != PT_DYNAMIC {
            continue;
        }
        let (dynamic, link) = sections
            .dynamic(endian, bytes)?
            .context("a dynamic segment without its section")?;
        let strings = sections.strings(endian, bytes, link)?;
        for entry in dynamic {
            if entry.tag(endian) == DT_NEEDED {
                let name = entry.string(endian, strings)?;
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    Ok(names)
}

/// The names in a kernel module's `depends=` field.
pub(crate) fn module_depends(bytes: &[u8]) -> Result<Vec<String>> {
    let file = ElfFile64::<Endianness>::parse(bytes).context("not a kernel module")?;
    let section = file
        .section_by_name(".modinfo")
        .context("a module without .modinfo")?;
    let info = section.data()?;
    let depends = info
        .split(|byte| *byte == 0)
        .find_map(|field| field.strip_prefix(b"depends="))
        .unwrap_or_default();
    Ok(String::from_utf8_lossy(depends)
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect())
}

/// The image without symbols and debug data: everything past the last loaded byte is cut off and
/// the header names no sections. Xen and QEMU boot by program headers alone.
pub(crate) fn strip(bytes: &[u8]) -> Result<Vec<u8>> {
    let header = FileHeader64::<Endianness>::parse(bytes).context("not a 64-bit ELF image")?;
    let endian = header.endian()?;
    let mut end = 0;
    for segment in header.program_headers(endian, bytes)? {
        if matches!(segment.p_type(endian), PT_LOAD | PT_NOTE) {
            let (offset, len) = segment.file_range(endian);
            end = end.max(offset.saturating_add(len));
        }
    }
    let end = usize::try_from(end)?;
    if end < size_of::<FileHeader64<Endianness>>() || end > bytes.len() {
        bail!(
            "the program headers end at byte {end} of an image of {} bytes",
            bytes.len()
        );
    }
    let mut image = bytes[..end].to_vec();
    image[E_SHOFF].fill(0);
    image[E_SHENTSIZE_SHNUM_SHSTRNDX].fill(0);
    Ok(image)
}

#[cfg(test)]
mod tests;
