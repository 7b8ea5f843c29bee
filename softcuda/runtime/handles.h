/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handles.h - which of the pointers that a program passes as handles are alive, so that others are
 * refused
 */
#ifndef SOFTCUDA_HANDLES_H
#define SOFTCUDA_HANDLES_H

#include <stdbool.h>

enum handle_kind {
	HANDLE_NONE,
	HANDLE_STREAM,
	HANDLE_EVENT,
	HANDLE_GRAPH,
	HANDLE_NODE,
	HANDLE_EXEC,
	HANDLE_USER_OBJECT,
	HANDLE_POOL,
	HANDLE_FUNCTION,
	HANDLE_MEMORY,
};

/* Returns false without memory. */
bool add_handle(const void *object, enum handle_kind kind);
bool is_handle(const void *object, enum handle_kind kind);
/* Returns whether it was alive: of several threads that destroy one object, one succeeds. */
bool remove_handle(const void *object, enum handle_kind kind);

#endif
