/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/metrics.h"

#include "base/log.h"
#include "ina/host/backend/net.h"

static uint64_t read_u64(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static unsigned read_u32(const _Atomic uint32_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# TYPE hawser_backend_%s %s\n# HELP hawser_backend_%s %s\n", name, type, name,
		help);
}

static void of_workers(const struct ha_backend *b, FILE *out)
{
	unsigned n = b->net->workers;

#define X(name, help)                                                                   \
	print_head(out, #name, "counter", help);                                        \
	for (unsigned i = 0; i < n; i++)                                                \
		fprintf(out, "hawser_backend_%s_total{worker=\"%u\"} %llu\n", #name, i, \
			(unsigned long long)read_u64(&b->worker[i]->stats.name));
	INA_COUNTER_LIST(X)
	HA_WORKER_COUNTERS(X)
#undef X
	print_head(out, "window", "gauge", "packets in flight");
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "hawser_backend_window{worker=\"%u\"} %u\n", i,
			read_u32(&b->worker[i]->stats.window));
	print_head(out, "streams", "gauge", "ranks that the worker serves");
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "hawser_backend_streams{worker=\"%u\"} %u\n", i,
			read_u32(&b->worker[i]->stats.streams));
}

static void print_counter(FILE *out, const char *name, uint64_t value, const char *help)
{
	print_head(out, name, "counter", help);
	fprintf(out, "hawser_backend_%s_total %llu\n", name, (unsigned long long)value);
}

static void print_gauge(FILE *out, const char *name, uint64_t value, const char *help)
{
	print_head(out, name, "gauge", help);
	fprintf(out, "hawser_backend_%s %llu\n", name, (unsigned long long)value);
}

void ha_backend_metrics(const struct ha_backend *b, FILE *out)
{
	of_workers(b, out);
#define X(name, help) print_counter(out, #name, read_u64(&b->balancer.stats.name), help);
	HA_BALANCER_COUNTERS(X)
#undef X
#define X(name, help) print_counter(out, #name, b->count.name, help);
	HA_BACKEND_COUNTERS(X)
#undef X
	print_counter(out, "packets_lost", b->net->ops->lost(b->net),
		      "packets lost between the card and the workers, or not sent");
	print_gauge(out, "clients_attached", b->npeers, "clients that are attached");
	print_gauge(out, "ranks", b->nmembers, "ranks of groups on this host");
	fputs("# EOF\n", out);
}

void ha_backend_figures_log(const struct ha_backend *b, struct ha_backend_figures *f,
			    uint64_t now_ns)
{
	double dt = (double)(now_ns - f->at_ns) / 1e9;

	for (unsigned i = 0; i < b->net->workers; i++) {
		const struct ha_worker_stats *s = &b->worker[i]->stats;
		uint64_t answered = read_u64(&s->answered);
		double bits = 8 * (double)(answered - f->answered[i]) / dt * 1e-9;
		char name[24];

		snprintf(name, sizeof(name), "worker %u", i);
		if (f->at_ns && answered != f->answered[i])
			HA_INFO(name,
				"sent %.4f Gb/s with headers (SW_TPT), %.4f Gb/s of data (SW_GPT); "
				"%u packets in flight (PSN %u to %u), congestion window %.1f",
				bits * INA_FRAME_MAX, bits * INA_PAYLOAD_BYTES,
				read_u32(&s->window), read_u32(&s->left_psn),
				read_u32(&s->right_psn), read_u32(&s->cwnd_tenths) / 10.0);
		f->answered[i] = answered;
	}
	f->at_ns = now_ns;
}
