/* SPDX-License-Identifier: BSD-3-Clause */
/* switch.bpf.c, compiled, inside of whoever loads it */
	.section .rodata
	.balign 8
	.globl ina_xdp_object, ina_xdp_object_end
	.hidden ina_xdp_object, ina_xdp_object_end
ina_xdp_object:
	.incbin INA_XDP_OBJECT
ina_xdp_object_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits
