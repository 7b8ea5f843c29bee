/* SPDX-License-Identifier: BSD-3-Clause */
/* doorbell.c - what the host compiler makes of a doorbell; test_host_doorbell.sh looks at it */
#include "gpu/device/hawser_gpu.h"

void write_doorbell(struct ha_gpu_conn *c, const struct ha_gpu_path *p, uint64_t upto);

void write_doorbell(struct ha_gpu_conn *c, const struct ha_gpu_path *p, uint64_t upto)
{
	ha_gpu_write_doorbell(c, p, upto);
}
