/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * user_object.h - things of a program that must live as long as graphs that use them
 */
#ifndef SOFTCUDA_USER_OBJECT_H
#define SOFTCUDA_USER_OBJECT_H

#include "softcuda/runtime/cuda_types.h"

/* NULL without memory. `destroy` is called, on whatever thread gives up the last reference. */
struct user_object *create_user_object(void *pointer, cudaHostFn_t destroy, unsigned references);
void retain_user_object(struct user_object *object, unsigned references);
void release_user_object(struct user_object *object, unsigned references);

#endif
