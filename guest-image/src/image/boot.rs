//! The PVH entry: from 32-bit protected mode without paging to Rust in long mode.
//!
//! Xen and QEMU's `-kernel` both find the entry by the ELF note 18 (`XEN_ELFNOTE_PHYS32_ENTRY`)
//! and start it with the physical address of `hvm_start_info` in EBX. The page tables made here
//! map the first 4 GiB read-write-execute; [`super::paging`] replaces them at once.

use core::arch::global_asm;

global_asm!(
    r#"
    .pushsection .note.Xen, "a", @note
    .balign 4
    .long 4                 // name size
    .long 8                 // descriptor size
    .long 18                // XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .quad pvh_start
    .popsection

    .pushsection .bss.boot_tables, "aw", @nobits
    .balign 4096
boot_pml4:
    .skip 4096
boot_pdpt:
    .skip 4096
boot_pds:
    .skip 4 * 4096
    .popsection

    .pushsection .rodata.boot_gdt, "a"
    .balign 8
boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff    // 64-bit code
    .quad 0x00cf93000000ffff    // data
boot_gdt_pointer:
    .word boot_gdt_pointer - boot_gdt - 1
    .long boot_gdt
    .popsection

    .pushsection .text.boot, "ax"
    .code32
    .global pvh_start
pvh_start:
    cld
    cli
    movl $__stack_top, %esp

    // 2048 pages of 2 MiB, read-write-execute, in four page directories.
    movl $boot_pds, %edi
    movl $0x83, %eax            // present, writable, large
    movl $2048, %ecx
1:  movl %eax, (%edi)
    movl $0, 4(%edi)
    addl $0x200000, %eax
    addl $8, %edi
    loop 1b

    movl $boot_pds + 3, %eax
    movl $boot_pdpt, %edi
    movl $4, %ecx
2:  movl %eax, (%edi)
    movl $0, 4(%edi)
    addl $4096, %eax
    addl $8, %edi
    loop 2b

    movl $boot_pdpt + 3, boot_pml4
    movl $0, boot_pml4 + 4

    movl %cr4, %eax
    orl $0x20, %eax             // PAE
    movl %eax, %cr4
    movl $boot_pml4, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx      // EFER: LME, NXE
    rdmsr
    orl $0x900, %eax
    wrmsr
    movl %cr0, %eax
    orl $0x80010000, %eax       // PG, WP
    movl %eax, %cr0
    lgdt boot_gdt_pointer
    ljmp $0x08, $3f

    .code64
3:  movl $0x10, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs
    movl $__stack_top, %esp
    xorl %ebp, %ebp             // ends the chain of frame pointers
    movl %ebx, %edi
    pushq %rbp                  // no return address
    jmp {entry}
    .popsection
    "#,
    entry = sym super::entry,
    options(att_syntax)
);
