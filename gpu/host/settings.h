/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.h - what the operator sets of the GPU-initiated path
 *
 * settings.c holds the table: variable, default, range, one line of help; README.md shows it.
 * Nonsense is an error with one line, not a default: a job that was meant to survive and silently
 * does not is worse than one that does not start.
 */
#ifndef HA_GPU_HOST_SETTINGS_H
#define HA_GPU_HOST_SETTINGS_H

#include "gpu/failover/agent.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ha_gpu_settings {
	uint64_t backup;      /* 0: no backup queue pairs */
	uint64_t qp_depth;    /* entries of a send queue, power of two */
	uint64_t rc_per_pe;   /* connections to each peer on each device at the first call */
	uint64_t proof_every; /* device/conn.h */
	/* 1: one completion entry per queue; 0: a ring as deep as the send queue */
	uint64_t cq_collapsed;
	uint64_t proxied;   /* 1: the host rings the doorbells */
	uint64_t chunk_log; /* log2 of the bytes that one key of the tables covers */
	/*
	 * health: GOOD -> SUSPECTED at once, FAILED after so many checks without an acknowledgement
	 */
	uint64_t check_ms, silent_checks;
	uint64_t recovery_ms, probes, no_path_ms, failback;
	uint64_t qp_timeout, qp_retry_cnt; /* as in ibv_qp_attr */
	uint64_t traffic_class, service_level;
	uint64_t connect_timeout_ms;
};

/* text of a variable, or NULL */
typedef const char *(*ha_gpu_settings_get)(void *user, const char *name);

void ha_gpu_settings_defaults(struct ha_gpu_settings *s);
/*
 * Defaults, then what `get` knows. -EINVAL, with a line that names the variable and what it takes.
 */
int ha_gpu_settings_load(struct ha_gpu_settings *s, ha_gpu_settings_get get, void *user);
int ha_gpu_settings_load_env(struct ha_gpu_settings *s);
/*
 * Also for settings that a program has filled in: ranges, and what must hold between them. 0 or
 * -EINVAL, with a line.
 */
int ha_gpu_settings_check(const struct ha_gpu_settings *s);
void ha_gpu_settings_agent(const struct ha_gpu_settings *s, struct ha_gpu_agent_config *agent);
/* For a test: the table of docs/gpu.md, which is the same. */
void ha_gpu_settings_print_markdown(FILE *out);

#ifdef __cplusplus
}
#endif

#endif
