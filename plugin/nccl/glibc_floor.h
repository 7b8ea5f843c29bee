/* SPDX-License-Identifier: BSD-3-Clause */
/* glibc_floor.h - the oldest C library that loads the plugin is 2.28; see glibc_floor.c */
#ifndef HA_NCCL_GLIBC_FLOOR_H
#define HA_NCCL_GLIBC_FLOOR_H

/* The first version of this architecture's C library. */
#if defined(__x86_64__)
#define HA_GLIBC_FIRST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define HA_GLIBC_FIRST "GLIBC_2.17"
#else
#error "the first version of this architecture's C library belongs here"
#endif

/* In this file `name` is the C library's own, of its first version: for a function whose address
 * outlives the plugin. */
#ifdef HA_GLIBC_FLOOR
#define HA_GLIBC_OWN(name) __asm__(".symver " #name "," #name "@" HA_GLIBC_FIRST)
#else
#define HA_GLIBC_OWN(name) _Static_assert(1, "")
#endif

#endif
