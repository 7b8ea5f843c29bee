/* SPDX-License-Identifier: BSD-3-Clause */
/* step_object.h - functions of so many instructions, on x86-64 */
#ifndef HA_TESTS_NCCL_STEP_OBJECT_H
#define HA_TESTS_NCCL_STEP_OBJECT_H

#define STEP_OBJECT_LOOP (1 + 50 * 2 + 1)
#define STEP_OBJECT_REPEATED 64
#define STEP_OBJECT_REPEAT (2 + STEP_OBJECT_REPEATED + 1)
#define STEP_OBJECT_CALL 3
#define STEP_OBJECT_AWAY 4
#define STEP_OBJECT_JUMP 1

void step_object_loop(void);
void step_object_repeat(void *to);
void step_object_call(void);
void step_object_away(void (*function)(void));
void step_object_jump(void (*function)(void));
#endif
