/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/user_object.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "softcuda/runtime/handles.h"

struct user_object {
	_Atomic unsigned references;
	void *pointer;
	cudaHostFn_t destroy;
};

struct user_object *create_user_object(void *pointer, cudaHostFn_t destroy, unsigned references)
{
	struct user_object *object = malloc(sizeof(*object));
	if (object == NULL)
		return NULL;
	*object = (struct user_object) { .references = references,
					 .pointer = pointer,
					 .destroy = destroy };
	if (!add_handle(object, HANDLE_USER_OBJECT)) {
		free(object);
		return NULL;
	}
	return object;
}

void retain_user_object(struct user_object *object, unsigned references)
{
	atomic_fetch_add_explicit(&object->references, references, memory_order_relaxed);
}

void release_user_object(struct user_object *object, unsigned references)
{
	if (atomic_fetch_sub_explicit(&object->references, references, memory_order_acq_rel) !=
	    references)
		return;
	remove_handle(object, HANDLE_USER_OBJECT);
	object->destroy(object->pointer);
	free(object);
}
