    // From where the loader leaves the CPU (32 bits, no pages: the PVH protocol, a note in the file)
    // to `boot` in 64 bits, with the first GiB mapped to itself. `marks-kernel` begins here, too.
    .section .note.pvh, "a", @note
    .align 4
    .long 4, 4, 18          // the lengths of the name and of the entry, XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .long start

    .section .bss.start, "aw", @nobits
    .align 4096
pages4: .skip 4096
pages3: .skip 4096
pages2: .skip 4096
    .skip 262144
boot_stack:

    .section .rodata.start, "a"
    .align 8
segments: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
segments_at: .word 23
    .quad segments

    .section .text.start, "ax"
    .code32
    .global start
start:
    mov $boot_stack, %esp
    movl $(pages3 + 3), pages4      // present, writable
    movl $(pages2 + 3), pages3
    xor %ecx, %ecx
1:  mov %ecx, %eax
    shl $21, %eax
    or $0x83, %eax                  // a page of 2 MiB
    mov %eax, pages2(, %ecx, 8)
    inc %ecx
    cmp $512, %ecx
    jne 1b
    mov $pages4, %eax
    mov %eax, %cr3
    mov %cr4, %eax
    or $0x20, %eax                  // PAE
    mov %eax, %cr4
    mov $0xc0000080, %ecx           // EFER: long mode
    rdmsr
    or $0x100, %eax
    wrmsr
    mov %cr0, %eax
    or $0x80000001, %eax            // pages, protected mode
    mov %eax, %cr0
    lgdt segments_at
    ljmp $8, $long
    .code64
long:
    mov $16, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    call boot
