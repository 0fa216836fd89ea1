use object::{
    Endianness,
    elf::{FileHeader32, PT_LOAD},
    read::elf::{FileHeader, ProgramHeader},
};

use super::*;

#[test]
fn the_probe_is_a_multiboot_kernel() {
    let image = probe_image();
    let header = FileHeader32::<Endianness>::parse(&*image).unwrap();
    let endian = header.endian().unwrap();
    let segments = header.program_headers(endian, &*image).unwrap();
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].p_type(endian), PT_LOAD);
    let (offset, len) = segments[0].file_range(endian);
    assert_eq!((offset, len), (0, image.len() as u64));
    // The entry is the first instruction: mov eax, 1.
    let entry = header.e_entry.get(endian) - segments[0].p_vaddr.get(endian);
    assert_eq!(image[entry as usize..][..5], [0xB8, 1, 0, 0, 0]);
    let magic = 0x1BAD_B002_u32.to_le_bytes();
    assert!(image.windows(4).step_by(4).any(|word| word == magic));
}

#[test]
fn only_a_probe_that_answered_makes_kvm_usable() {
    for (status, plain, xen) in [
        (None, false, false),
        (Some(1), false, false),
        (Some(0x20 * 2 + 1), true, false),
        (Some(0x21 * 2 + 1), true, true),
    ] {
        let probe = Probe::from_status(status);
        assert_eq!(
            (probe.suits(Use::Plain), probe.suits(Use::Xen)),
            (plain, xen),
            "{status:?}"
        );
    }
}

#[test]
fn old_translators_run_without_what_they_get_wrong() {
    let args = |accel: Accel| accel.args().join(" ");
    let tcg = |old| Accel::Tcg {
        old,
        clock: Clock::Host,
    };
    assert_eq!(
        args(tcg(true)),
        "-accel tcg,thread=multi -cpu max,smap=off,pku=off"
    );
    assert_eq!(args(tcg(false)), "-accel tcg,thread=multi -cpu max");
    assert_eq!(args(Accel::Kvm), "-accel kvm -cpu host");
}

#[test]
fn instructions_are_counted_on_one_thread() {
    let accel = Accel::Tcg {
        old: false,
        clock: Clock::Instructions,
    };
    assert_eq!(
        accel.args().join(" "),
        "-accel tcg,thread=single -icount shift=0,sleep=off -cpu max"
    );
    assert_eq!(accel.clock(), Clock::Instructions);
    assert_eq!(Accel::Kvm.clock(), Clock::Host);
}
