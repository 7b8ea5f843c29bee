/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * imports.h - counts the calls that a loaded library makes to functions of other objects
 *
 * Whatever a library cannot do by itself (allocate, lock, enter the kernel) it does through a
 * function that it imports, and each import is one word of its global offset table. Every such word
 * is pointed at a thunk that counts and jumps on. Calls through pointers the library was handed (a
 * verbs provider's operations) are not imports and are not counted, nor are the calls of any thread
 * but the one that hooked.
 */
#ifndef HA_TESTS_NCCL_IMPORTS_H
#define HA_TESTS_NCCL_IMPORTS_H

#define IMPORTS_MAX 512

struct import {
	const char *name;
	unsigned long calls;
};

/* Hooks every imported function of the library behind a dlopen handle. Returns how many, 0 where it
 * is not possible. */
int imports_hook(void *library);
/* The hooked functions, imports_hook()'s result of them. */
extern struct import imports[IMPORTS_MAX];

#endif
