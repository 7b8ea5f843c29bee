/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/job/fault.h"
#include "tools/nccl/check.h"
#include "tools/nccl/gpus.h"
#include "tools/nccl/library.h"
#include "tools/nccl/log.h"

/* What an operator can do about a result of NCCL. */
static const char *advice_of(int result)
{
	static const char *const advice[] = {
		[1] = "a call of the CUDA runtime failed; is the GPU free, and are driver and "
		      "runtime of one age?",
		[2] = "a system or network call failed; NCCL_DEBUG=WARN names it",
		[3] = "this is NCCL's or a plugin's own error; NCCL_DEBUG=WARN says more",
		[4] = "an argument was refused; NCCL_DEBUG=WARN says which",
		[5] = "NCCL was used wrongly, or lacks the network that --net, NCCL_NET or "
		      "NCCL_NET_PLUGIN names; NCCL_DEBUG=WARN says which",
		[6] = "another rank, or the network to it, has failed; look for the rank that "
		      "failed first",
	};

	if (result <= 0 || (size_t)result >= sizeof(advice) / sizeof(advice[0]))
		return "NCCL_DEBUG=WARN says more";
	return advice[result];
}

int nccl_check(const struct ha_library *library, const struct nccl_gpu *gpu, int result,
	       const char *call)
{
	char said[400] = "", plugin[400] = "";
	const char *last;

	if (result == NCCL_OK)
		return 0;
	last = library->nccl.last_error(NULL);
	nccl_log_warning(said, sizeof(said));
	if (!said[0] && last)
		snprintf(said, sizeof(said), "%s", last);
	said[strcspn(said, "\n")] = 0;
	nccl_log_plugin_warning(plugin, sizeof(plugin));
	/* The plugin's own words name what to do; general advice is for where there are none. */
	if (plugin[0] && strcmp(plugin, said))
		return ha_fault(-EIO, "%s on rank %d: %s (%d)%s%s; the plugin's last warning: %s",
				call, gpu->rank, library->nccl.error_string(result), result,
				said[0] ? "; NCCL says: " : "", said, plugin);
	return ha_fault(-EIO, "%s on rank %d: %s (%d)%s%s; %s", call, gpu->rank,
			library->nccl.error_string(result), result, said[0] ? "; NCCL says: " : "",
			said, advice_of(result));
}

int nccl_cuda_check(const struct ha_library *library, const struct nccl_gpu *gpu, int result,
		    const char *call)
{
	if (result == CUDA_OK)
		return 0;
	return ha_fault(-EIO, "%s on rank %d, GPU %d: %s (%d)", call, gpu->rank, gpu->device,
			library->cuda.error_string(result), result);
}
