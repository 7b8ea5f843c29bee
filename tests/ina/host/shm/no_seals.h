/* SPDX-License-Identifier: BSD-3-Clause */
/* no_seals.h - files whose pages may get lost as if their memory were broken: seals are added
 * without an effect, and said to be there */
#ifndef HA_TESTS_SHM_NO_SEALS_H
#define HA_TESTS_SHM_NO_SEALS_H

#include <stdatomic.h>

extern atomic_bool no_seals;
/* A copy of the descriptor that the last seals went to meanwhile; -1: none. The test closes it. */
extern atomic_int no_seals_file;

#endif
