/* SPDX-License-Identifier: BSD-3-Clause */
/* abi_names.h - names of the version ABI_VERSION, for what several versions have in common */
#ifndef HA_NCCL_ABI_NAMES_H
#define HA_NCCL_ABI_NAMES_H

#define ABI_PASTE_(a, b) a##b
#define ABI_PASTE(a, b) ABI_PASTE_(a, b)
#define ABI_TYPE_(stem, v) stem##_v##v##_t
#define ABI_TYPE_OF(stem, v) ABI_TYPE_(stem, v)
#define ABI_NAME(stem) ABI_PASTE(stem, ABI_VERSION)
#define ABI_TYPE(stem) ABI_TYPE_OF(stem, ABI_VERSION)

#endif
