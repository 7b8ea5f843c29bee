/* SPDX-License-Identifier: BSD-3-Clause */
/* step_object.c - an object whose instructions are known: what test_step has bench-step count */
#include "tests/plugin/nccl/step_object.h"

#ifdef __x86_64__
__asm__(".text\n"
	".globl step_object_loop\n"
	".type step_object_loop, @function\n"
	"step_object_loop:\n"
	"	movl $50, %ecx\n"
	"1:	decl %ecx\n"
	"	jnz 1b\n"
	"	ret\n"
	".size step_object_loop, . - step_object_loop\n"
	/* rdi: where */
	".globl step_object_repeat\n"
	".type step_object_repeat, @function\n"
	"step_object_repeat:\n"
	"	movl $64, %ecx\n"
	"	xorl %eax, %eax\n"
	"	rep stosb\n"
	"	ret\n"
	".size step_object_repeat, . - step_object_repeat\n"
	/* getppid, a system call of the object's own */
	".globl step_object_call\n"
	".type step_object_call, @function\n"
	"step_object_call:\n"
	"	movl $110, %eax\n"
	"	syscall\n"
	"	ret\n"
	".size step_object_call, . - step_object_call\n"
	/* rdi: a function of another object, called */
	".globl step_object_away\n"
	".type step_object_away, @function\n"
	"step_object_away:\n"
	"	subq $8, %rsp\n"
	"	call *%rdi\n"
	"	addq $8, %rsp\n"
	"	ret\n"
	".size step_object_away, . - step_object_away\n"
	/* rdi: the same, which returns to the caller's caller */
	".globl step_object_jump\n"
	".type step_object_jump, @function\n"
	"step_object_jump:\n"
	"	jmp *%rdi\n"
	".size step_object_jump, . - step_object_jump\n");
#else
void step_object_loop(void)
{
}
void step_object_repeat(void *to)
{
	(void)to;
}
void step_object_call(void)
{
}
#endif
