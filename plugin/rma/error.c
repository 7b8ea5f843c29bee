/* SPDX-License-Identifier: BSD-3-Clause */
/* error.c - the first error of a communicator stays */
#include "plugin/rma/comm.h"

#include "base/log.h"

#include <string.h>

int ha_rma_fail(struct ha_rma *rma, int err, const char *what)
{
	if (!rma->error) {
		__atomic_store_n(&rma->error, err, __ATOMIC_RELAXED);
		HA_WARN(NULL,
			"one-sided: %s: %s; rank %d of %d can no longer put, get or signal, and a "
			"kernel that waits for a "
			"signal waits for ever: end the job",
			what, strerror(-err), rma->rank, rma->nranks);
	}
	return rma->error;
}

int ha_rma_error(const struct ha_rma *rma)
{
	return __atomic_load_n(&rma->error, __ATOMIC_RELAXED);
}
