/* SPDX-License-Identifier: BSD-3-Clause */
/* layout_check.c - every offset is what was read in NCCL's sources, or this does not compile */
#include "softcuda/nccl/gin_layout.h"
#include "softcuda/nccl/layout.h"

#include <stddef.h>

#define SIZE(type, theirs, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type);
#define OFFSET(type, field, theirs, their_field, bytes) \
	_Static_assert(offsetof(type, field) == (bytes), "offset of " #field " in " #type);

#include "softcuda/nccl/offsets.h"
#include LAYOUT_OFFSETS
