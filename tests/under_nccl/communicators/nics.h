/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HA_TESTS_COMMUNICATORS_NICS_H
#define HA_TESTS_COMMUNICATORS_NICS_H

#include <sys/types.h>

/* nics - cables of the software NIC soft<nic> of one process, from the process that looks on.
 * Return when it is done. */
void nic_cut(pid_t pid, int nic);
void nic_heal(pid_t pid, int nic);

#endif
