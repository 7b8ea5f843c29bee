/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/metrics.h"

#include "base/log.h"
#include "ina/host/backend/net.h"

static uint64_t get(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static unsigned get32(const _Atomic uint32_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# TYPE hawser_backend_%s %s\n# HELP hawser_backend_%s %s\n", name, type, name,
		help);
}

static void of_workers(const struct ha_backend *b, FILE *out)
{
	unsigned n = b->net->workers;

#define X(name, help)                                                                   \
	head(out, #name, "counter", help);                                              \
	for (unsigned i = 0; i < n; i++)                                                \
		fprintf(out, "hawser_backend_%s_total{worker=\"%u\"} %llu\n", #name, i, \
			(unsigned long long)get(&b->worker[i]->stats.name));
	INA_COUNTER_LIST(X)
	HA_WORKER_COUNTERS(X)
#undef X
	head(out, "window", "gauge", "packets in flight");
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "hawser_backend_window{worker=\"%u\"} %u\n", i,
			get32(&b->worker[i]->stats.window));
	head(out, "streams", "gauge", "ranks that the worker serves");
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "hawser_backend_streams{worker=\"%u\"} %u\n", i,
			get32(&b->worker[i]->stats.streams));
}

static void counter(FILE *out, const char *name, uint64_t value, const char *help)
{
	head(out, name, "counter", help);
	fprintf(out, "hawser_backend_%s_total %llu\n", name, (unsigned long long)value);
}

static void gauge(FILE *out, const char *name, uint64_t value, const char *help)
{
	head(out, name, "gauge", help);
	fprintf(out, "hawser_backend_%s %llu\n", name, (unsigned long long)value);
}

void ha_backend_metrics(const struct ha_backend *b, FILE *out)
{
	of_workers(b, out);
#define X(name, help) counter(out, #name, get(&b->balancer.stats.name), help);
	HA_BALANCER_COUNTERS(X)
#undef X
#define X(name, help) counter(out, #name, b->count.name, help);
	HA_BACKEND_COUNTERS(X)
#undef X
	counter(out, "packets_lost", b->net->ops->lost(b->net),
		"packets lost between the card and the workers, or not sent");
	gauge(out, "clients_attached", b->npeers, "clients that are attached");
	gauge(out, "ranks", b->nmembers, "ranks of groups on this host");
	fputs("# EOF\n", out);
}

void ha_backend_figures_log(const struct ha_backend *b, struct ha_backend_figures *f,
			    uint64_t now_ns)
{
	double dt = (double)(now_ns - f->at_ns) / 1e9;

	for (unsigned i = 0; i < b->net->workers; i++) {
		const struct ha_worker_stats *s = &b->worker[i]->stats;
		uint64_t answered = get(&s->answered);
		double bits = 8 * (double)(answered - f->answered[i]) / dt * 1e-9;
		char name[24];

		snprintf(name, sizeof(name), "worker %u", i);
		if (f->at_ns && answered != f->answered[i])
			HA_INFO(name, "SW_TPT %.4fGbps SW_GPT %.4fGbps WIN %u CWND %.1f PSN %u~%u",
				bits * INA_FRAME_MAX, bits * INA_PAYLOAD_BYTES, get32(&s->window),
				get32(&s->cwnd_tenths) / 10.0, get32(&s->left_psn),
				get32(&s->right_psn));
		f->answered[i] = answered;
	}
	f->at_ns = now_ns;
}
