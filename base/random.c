/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static void (*source)(void *buf, size_t len); /* NULL = the kernel */

void ha_random_set_source(void (*fill)(void *buf, size_t len))
{
	source = fill;
}

void ha_random_bytes(void *buf, size_t len)
{
	unsigned char *p = buf;

	if (source) {
		source(buf, len);
		return;
	}
	while (len) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			/* a kernel without getrandom is older than any that has RDMA here */
			abort();
		}
		p += n;
		len -= (size_t)n;
	}
}

uint64_t ha_random_u64(void)
{
	uint64_t v;

	ha_random_bytes(&v, sizeof(v));
	return v;
}
