/* SPDX-License-Identifier: BSD-3-Clause */
/* `ha perf`: drives a NCCL net plugin the way NCCL's proxy does. */
#include <stdio.h>

#include "tools/ha.h"

int ha_cmd_perf(int argc, char **argv)
{
	fprintf(stderr, "ha perf: no operation given\n");
	return 2;
}
