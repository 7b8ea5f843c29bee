/* SPDX-License-Identifier: BSD-3-Clause */
/* host.h - the sysfs of a host that is not here, from a file of tests/agent/trees */
#ifndef HA_TESTS_AGENT_HOST_H
#define HA_TESTS_AGENT_HOST_H

#include "tests/rdma/topo/tree.h"

#include <stdint.h>

/* Lines "PATH = TEXT"; of several with one path all lines are the file's. */
void host_lay(struct tree *t, const char *folder, const char *name);
/* Replace a number. */
void host_number(const struct tree *t, const char *path, uint64_t value);

#endif
