/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/host/settings.h"

#include "base/log.h"
#include "base/names.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct row {
	const char *name, *help;
	size_t at;
	uint64_t def, min, max;
	bool power; /* of two, or 0 where 0 is in range */
};

#define ROW(field, name, def, min, max, power, help)                                      \
	{                                                                                 \
		name, help, offsetof(struct ha_gpu_settings, field), def, min, max, power \
	}

static const struct row rows[] = {
	ROW(backup, "HA_GPU_ENABLE_BACKUP", 1, 0, 1, false,
	    "A second queue pair on another NIC for each connection; 0 = none. The same at all "
	    "ranks."),
	ROW(qp_depth, "HA_GPU_QP_DEPTH", 1024, 64, 32768, true,
	    "Entries of a send queue, a power of two."),
	ROW(rc_per_pe, "HA_GPU_RC_PER_PE", 2, 1, 64, false,
	    "Connections to each peer on each device at the first call; later calls may add."),
	ROW(proof_every, "HA_GPU_PROOF_EVERY", 64, 0, 8192, true,
	    "Every so many entries a read proves placement (64 and more, at most a quarter of the "
	    "depth); 0 = acknowledgements are believed."),
	ROW(cq_collapsed, "HA_GPU_CQ_COLLAPSED", 1, 0, 1, false,
	    "1 = one completion entry per queue; 0 = a ring as deep as the send queue."),
	ROW(proxied, "HA_GPU_PROXY", 0, 0, 1, false,
	    "1 = the host rings the doorbells; 0 = GPU threads do."),
	ROW(chunk_log, "HA_GPU_CHUNK_LOG", 21, 12, 40, false,
	    "log2 of the bytes that one key of the tables covers. The same at all ranks."),
	ROW(check_ms, "HA_GPU_CHECK_MS", 10, 1, 10000, false,
	    "Milliseconds between two looks at a path; a path that says nothing is SUSPECTED after "
	    "one."),
	ROW(silent_checks, "HA_GPU_SILENT_CHECKS", 200, 2, 100000, false,
	    "Looks without an acknowledgement after which a path has FAILED. Times HA_GPU_CHECK_MS "
	    "it must exceed the NIC's own window."),
	ROW(recovery_ms, "HA_GPU_RECOVERY_MS", 100, 1, 600000, false,
	    "Milliseconds before a path that failed is connected again; doubles up to 64 times "
	    "with each failure; up for 64 times as long it has one less."),
	ROW(probes, "HA_GPU_PROBES", 3, 1, 1000, false,
	    "Probes that a recovering path has to answer before it is GOOD."),
	ROW(no_path_ms, "HA_GPU_NO_PATH_MS", 30000, 10, 86400000, false,
	    "Milliseconds without any path after which operations end with BOTH_DOWN; time in "
	    "which the process is stopped does not count."),
	ROW(failback, "HA_GPU_FAILBACK", 1, 0, 1, false,
	    "1 = return to the primary when it is GOOD again."),
	ROW(qp_timeout, "HA_GPU_QP_TIMEOUT", 14, 1, 31, false,
	    "Local ACK timeout of the queue pairs, 4.096 us x 2^value."),
	ROW(qp_retry_cnt, "HA_GPU_QP_RETRY_CNT", 7, 0, 7, false,
	    "Times that the NIC repeats a packet."),
	ROW(traffic_class, "HA_GPU_TRAFFIC_CLASS", 0, 0, 255, false,
	    "Traffic class of RoCE packets."),
	ROW(service_level, "HA_GPU_SL", 0, 0, 15, false,
	    "Service level on InfiniBand, priority on RoCE (0 to 7)."),
	ROW(connect_timeout_ms, "HA_GPU_CONNECT_TIMEOUT_MS", 60000, 100, 86400000, false,
	    "Milliseconds after which set-up with a peer that does not answer ends with an error."),
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

static uint64_t *field_of(struct ha_gpu_settings *s, const struct row *r)
{
	return (uint64_t *)((char *)s + r->at);
}

static uint64_t value_of(const struct ha_gpu_settings *s, const struct row *r)
{
	return *(const uint64_t *)((const char *)s + r->at);
}

void ha_gpu_settings_defaults(struct ha_gpu_settings *s)
{
	for (size_t i = 0; i < NROWS; i++)
		*field_of(s, &rows[i]) = rows[i].def;
}

static int parse_value(const struct row *r, const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] < '0' || text[0] > '9') {
		HA_WARN(r->name,
			"is '%s', which is no number; it takes %llu to %llu (default %llu)", text,
			(unsigned long long)r->min, (unsigned long long)r->max,
			(unsigned long long)r->def);
		return -EINVAL;
	}
	return 0;
}

static int check_row(const struct ha_gpu_settings *s, const struct row *r)
{
	uint64_t v = value_of(s, r);

	if (v >= r->min && v <= r->max && (!r->power || !(v & (v - 1))))
		return 0;
	HA_WARN(r->name, "is %llu; it takes %llu to %llu%s (default %llu)", (unsigned long long)v,
		(unsigned long long)r->min, (unsigned long long)r->max,
		r->power ? ", a power of two" : "", (unsigned long long)r->def);
	return -EINVAL;
}

/* The NIC repeats for 4.096 us x 2^timeout x (retries + 1); before that, silence is no failure. */
static int check_silence(const struct ha_gpu_settings *s)
{
	uint64_t window_ns = (UINT64_C(4096) << s->qp_timeout) * (s->qp_retry_cnt + 1),
		 window_ms = (window_ns + 999999) / 1000000;

	if (s->check_ms * s->silent_checks * 1000000 > window_ns)
		return 0;
	HA_WARN("HA_GPU_SILENT_CHECKS",
		"x HA_GPU_CHECK_MS is %llu ms, within the NIC's own window of %llu ms "
		"(HA_GPU_QP_TIMEOUT, "
		"HA_GPU_QP_RETRY_CNT): a path would be given up while the NIC still repeats; raise "
		"one or lower the other",
		(unsigned long long)(s->check_ms * s->silent_checks),
		(unsigned long long)window_ms);
	return -EINVAL;
}

int ha_gpu_settings_check(const struct ha_gpu_settings *s)
{
	for (size_t i = 0; i < NROWS; i++)
		if (check_row(s, &rows[i]))
			return -EINVAL;
	if (s->proof_every && (s->proof_every < 64 || s->proof_every > s->qp_depth / 4)) {
		HA_WARN("HA_GPU_PROOF_EVERY",
			"is %llu; it takes 0, or 64 to a quarter of HA_GPU_QP_DEPTH (%llu)",
			(unsigned long long)s->proof_every, (unsigned long long)s->qp_depth / 4);
		return -EINVAL;
	}
	return check_silence(s);
}

int ha_gpu_settings_load(struct ha_gpu_settings *s, ha_gpu_settings_get get, void *user)
{
	const char *text;

	ha_gpu_settings_defaults(s);
	for (size_t i = 0; i < NROWS; i++) {
		text = get(user, rows[i].name);
		if (text && parse_value(&rows[i], text, field_of(s, &rows[i])))
			return -EINVAL;
	}
	return ha_gpu_settings_check(s);
}

static const char *from_env(void *user, const char *name)
{
	return getenv(name);
}

static void report_unknown(const char *name, const char *nearest)
{
	HA_WARN(NULL, "%s is set, but there is no such variable%s%s; docs/gpu.md lists them", name,
		nearest ? "; did you mean " : "", nearest ? nearest : "");
}

int ha_gpu_settings_load_env(struct ha_gpu_settings *s)
{
	const char *known[NROWS];

	for (size_t i = 0; i < NROWS; i++)
		known[i] = rows[i].name;
	ha_names_check("HA_GPU_", known, NROWS, report_unknown);
	return ha_gpu_settings_load(s, from_env, NULL);
}

void ha_gpu_settings_agent(const struct ha_gpu_settings *s, struct ha_gpu_agent_config *a)
{
	ha_gpu_agent_defaults(a);
	a->check_ns = s->check_ms * 1000000;
	a->recovery_ns = s->recovery_ms * 1000000;
	a->no_path_ns = s->no_path_ms * 1000000;
	a->silent_checks = (unsigned)s->silent_checks;
	a->probes = (unsigned)s->probes;
	a->failback = s->failback;
}

void ha_gpu_settings_print_markdown(FILE *out)
{
	fprintf(out, "| variable | default | range | meaning |\n|---|---|---|---|\n");
	for (size_t i = 0; i < NROWS; i++)
		fprintf(out, "| `%s` | %llu | %llu to %llu | %s |\n", rows[i].name,
			(unsigned long long)rows[i].def, (unsigned long long)rows[i].min,
			(unsigned long long)rows[i].max, rows[i].help);
}
