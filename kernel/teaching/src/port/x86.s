    // The CPU stores where to go on at on the stack of the task; a trap the registers below that. It
    // gives `trap` their place, and loads those of the place that it returns.
    .global ticked_entry, called_entry
called_entry:
    push %rsi
    push %rdi
    mov $1, %esi
    jmp 2f
ticked_entry:
    push %rsi
    push %rdi
    xor %esi, %esi
2:  push %rax
    push %rbx
    push %rcx
    push %rdx
    push %rbp
    push %r8
    push %r9
    push %r10
    push %r11
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, %rdi
    cld
    call trap
    mov %rax, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %r11
    pop %r10
    pop %r9
    pop %r8
    pop %rbp
    pop %rdx
    pop %rcx
    pop %rbx
    pop %rax
    pop %rdi
    pop %rsi
    iretq
