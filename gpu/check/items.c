/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * items.c - what is tried, in the order in which hardware is likely to say no
 *
 * Both ranks run every item. sync_ranks() is a barrier; whoever is about to fail still goes to all
 * of them, so that nobody waits for a rank that has left. The heap of each rank: a megabyte to send
 * from, one that the other writes, one that is read into.
 */
#include "gpu/check/check.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)
#define LIMIT (20 * SECOND)
#define PART (1u << 20)
#define SIGNAL 1

enum ha_gpu_verdict ha_gpu_check_report(struct ha_gpu_check *k, enum ha_gpu_verdict v,
					const char *format, ...)
{
	va_list a;

	va_start(a, format);
	vsnprintf(k->text, sizeof(k->text), format, a);
	va_end(a);
	return v;
}

/* ---- both ranks ---- */

static bool sync_ranks(struct ha_gpu_check *k, bool good)
{
	return !ha_gpu_bootstrap_agree(k->config.bootstrap, good ? 0 : -EIO);
}

static uint8_t *source_of(struct ha_gpu_check *k)
{
	return k->heap;
}

static uint8_t *destination_of(struct ha_gpu_check *k)
{
	return k->heap + PART;
}

static uint64_t peer_address(const struct ha_gpu_check *k, uint64_t offset)
{
	return k->conn->remote + PART + offset;
}

static void fill_pattern(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + seed * 31 + 1);
}

static bool has_pattern(const uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (uint8_t)(i * 7 + (i >> 8) * 13 + seed * 31 + 1))
			return false;
	return true;
}

static bool is_done(enum ha_gpu_result r)
{
	return r == HA_GPU_DONE;
}

static void sleep_ms(unsigned ms)
{
	const struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

/* Until the word, which an agent or a NIC changes, is that; false: it took too long. */
static bool await_value(const uint64_t *word, uint64_t value, uint64_t limit)
{
	for (uint64_t end = ha_gpu_now() + limit; ha_gpu_load(word) != value; sleep_ms(1))
		if (ha_gpu_now() > end)
			return false;
	return true;
}

/* ---- set-up ---- */

static enum ha_gpu_verdict check_ports(struct ha_gpu_check *k)
{
	struct ha_gpu_port_info list[HA_GPU_PORTS_MAX];
	const struct ha_gpu_backup_map *map;
	int n = k->config.ops->ports(k->config.hw, list, HA_GPU_PORTS_MAX), r, up = 0, first = -1;

	for (int i = 0; i < n; i++) {
		up += list[i].up;
		first = first < 0 && list[i].up ? i : first;
	}
	r = ha_gpu_host_open(&k->config, &k->host); /* fails at both or at neither */
	if (r) {
		k->host = NULL;
		return ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					   "%d ports listed, %d up; a device does not open: %s",
					   n < 0 ? 0 : n, up, strerror(-r));
	}
	if (!k->config.settings.backup)
		return ha_gpu_check_report(k, HA_GPU_CHECK_NOT_HERE,
					   "%d up; HA_GPU_ENABLE_BACKUP=0, so none is backed up",
					   up);
	map = ha_gpu_host_backups(k->host);
	if (map->of[first] < 0)
		return ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					   "%d ports up, and nothing backs up %s: two are needed",
					   up, list[first].name);
	return ha_gpu_check_report(k, HA_GPU_CHECK_OK, "%d up; %s is backed up by %s", up,
				   list[first].name, list[map->of[first]].name);
}

static enum ha_gpu_verdict check_queues(struct ha_gpu_check *k)
{
	int r = k->host ? ha_gpu_host_connect(k->host, 2, 2) : -ENODEV;

	if (r)
		return ha_gpu_check_report(
			k, HA_GPU_CHECK_FAILED,
			"no queue pairs, or they do not connect: %s; the lines before say which "
			"command was refused",
			strerror(-r));
	k->conn = ha_gpu_world_conn(ha_gpu_host_world(k->host), 0, (uint32_t)!k->rank);
	if (!k->conn->path[1].wqe)
		return ha_gpu_check_report(
			k, HA_GPU_CHECK_OK,
			"completion queues %s, queue pair 0x%x ready to send, without a backup",
			k->config.settings.cq_collapsed ? "collapsed" : "as rings",
			k->conn->path[0].qpn);
	return ha_gpu_check_report(
		k, HA_GPU_CHECK_OK,
		"completion queues %s, queue pair 0x%x and its backup 0x%x ready to send",
		k->config.settings.cq_collapsed ? "collapsed" : "as rings", k->conn->path[0].qpn,
		k->conn->path[1].qpn);
}

/* ---- one thing at a time ---- */

static enum ha_gpu_verdict check_put(struct ha_gpu_check *k)
{
	struct ha_gpu_conn *c = k->conn;
	uint64_t before = ha_gpu_signal_value(c, SIGNAL);
	bool good, same;

	fill_pattern(source_of(k), 4096, 1 + (unsigned)k->rank);
	sync_ranks(k, true);
	good = is_done(ha_gpu_put_nbi(c, peer_address(k, 0), source_of(k), 4096, 0, LIMIT)) &&
	       is_done(ha_gpu_signal(c, SIGNAL, 1, 0, LIMIT)) &&
	       is_done(ha_gpu_wait(c, SIGNAL, before + 1, LIMIT));
	same = has_pattern(destination_of(k), 4096, 1 + (unsigned)!k->rank);
	sync_ranks(k, true);
	if (!good)
		return ha_gpu_check_report(
			k, HA_GPU_CHECK_FAILED,
			"a put and a signal, and nothing came (error word 0x%llx)",
			(unsigned long long)ha_gpu_load(&c->error));
	return same ? ha_gpu_check_report(k, HA_GPU_CHECK_OK, "4096 bytes and a signal each way")
		    : ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					  "other bytes came than were sent");
}

/* Rows 0 and 1 have a queue pair each; their registers may lie on one page. */
static enum ha_gpu_verdict check_doorbells(struct ha_gpu_check *k)
{
	struct ha_gpu_conn *c[2] = { k->conn, ha_gpu_world_conn(ha_gpu_host_world(k->host), 1,
								(uint32_t)!k->rank) };
	uint64_t page[2];
	bool good = true;

	for (unsigned i = 0; i < 2; i++)
		page[i] = (uint64_t)(uintptr_t)c[i]->path[0].bf >> 12;
	for (unsigned i = 0; i < 20 * k->rounds && good; i++)
		good = is_done(ha_gpu_signal(c[i & 1], SIGNAL + 1, 1, 0, LIMIT));
	for (unsigned i = 0; i < 2 && good; i++)
		good = is_done(ha_gpu_quiet(c[i], LIMIT));
	if (!good)
		return ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					   "two queue pairs in turns: one stood still");
	return ha_gpu_check_report(k, HA_GPU_CHECK_OK,
				   "%u in turns on two queue pairs, whose registers lie on %s",
				   20 * k->rounds, page[0] == page[1] ? "one page" : "two pages");
}

static enum ha_gpu_verdict check_order(struct ha_gpu_check *k)
{
	struct ha_gpu_conn *c = k->conn;
	uint64_t before = ha_gpu_signal_value(c, SIGNAL);
	unsigned n = 2 * k->rounds, torn = 0;
	bool good = true;

	sync_ranks(k, true);
	for (unsigned i = 1; i <= n && good; i++) {
		fill_pattern(source_of(k), 65536, i);
		good = is_done(ha_gpu_put_nbi(c, peer_address(k, (i & 1) * 65536), source_of(k),
					      65536, HA_GPU_LATER, LIMIT)) &&
		       is_done(ha_gpu_signal(c, SIGNAL, 1, 0, LIMIT)) &&
		       is_done(ha_gpu_wait(c, SIGNAL, before + i, LIMIT));
		torn += good && !has_pattern(destination_of(k) + (i & 1) * 65536, 65536, i);
		good = good && is_done(ha_gpu_quiet(c, LIMIT));
	}
	sync_ranks(k, true);
	if (!good)
		return ha_gpu_check_report(k, HA_GPU_CHECK_FAILED, "it stands still");
	return torn ? ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					  "%u of %u signals came before their data: relaxed "
					  "ordering must be off",
					  torn, n)
		    : ha_gpu_check_report(k, HA_GPU_CHECK_OK,
					  "%u times 64 KiB were whole when their signal came", n);
}

/* What quiet() says is placed, the other rank finds in memory, without a signal. */
static enum ha_gpu_verdict check_proof(struct ha_gpu_check *k)
{
	unsigned n = k->rounds / 5 + 1, missing = 0;
	bool good = true;

	for (unsigned i = 1; i <= n; i++) {
		fill_pattern(source_of(k), 32768, i + 100);
		good = good &&
		       is_done(ha_gpu_put_nbi(k->conn, peer_address(k, 0), source_of(k), 32768, 0,
					      LIMIT)) &&
		       is_done(ha_gpu_quiet(k->conn, LIMIT));
		sync_ranks(k, true);
		missing += !has_pattern(destination_of(k), 32768, i + 100);
		sync_ranks(k, true);
	}
	if (!good)
		return ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					   "the read behind a put does not come back");
	return missing ? ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					     "%u of %u puts were not in memory when the read "
					     "behind them was back",
					     missing, n)
		       : ha_gpu_check_report(k, HA_GPU_CHECK_OK,
					     "%u puts of 32 KiB were in memory when the read "
					     "behind them was back",
					     n);
}

static enum ha_gpu_verdict check_inline(struct ha_gpu_check *k)
{
	uint64_t *at = (uint64_t *)(void *)destination_of(k), value, torn = 0,
		 end = ha_gpu_now() + LIMIT;
	unsigned n = 50 * k->rounds;
	bool good = true;

	ha_gpu_store(at, 0);
	sync_ranks(k, true);
	if (!k->rank)
		for (uint64_t i = 1; i <= n && good; i++) {
			value = i << 32 | i;
			good = is_done(ha_gpu_put_inline(k->conn, peer_address(k, 0), &value, 8,
							 i % 4 ? HA_GPU_LATER : 0, LIMIT));
		}
	for (value = 0; k->rank && (uint32_t)value != n && ha_gpu_now() < end;) {
		value = ha_gpu_load(at);
		torn += (uint32_t)value != value >> 32;
		ha_gpu_pause();
	}
	good = good && (k->rank ? (uint32_t)value == n : is_done(ha_gpu_quiet(k->conn, LIMIT)));
	sync_ranks(k, true);
	if (!good)
		return ha_gpu_check_report(k, HA_GPU_CHECK_FAILED, "the last of %u did not come",
					   n);
	return torn ? ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					  "%llu torn values of 8 bytes were seen",
					  (unsigned long long)torn)
		    : ha_gpu_check_report(k, HA_GPU_CHECK_OK,
					  "%u values of 8 bytes, none seen torn", n);
}

/*
 * A read of much, a fence, a signal: when the other rank has the signal it overwrites what was
 * read.
 */
static enum ha_gpu_verdict check_fence(struct ha_gpu_check *k)
{
	struct ha_gpu_conn *c = k->conn;
	uint64_t before = ha_gpu_signal_value(c, SIGNAL);
	unsigned n = k->rounds / 10 + 1, early = 0;
	bool good = true;

	for (unsigned i = 1; i <= n; i++) {
		fill_pattern(destination_of(k), 262144, i + 7);
		sync_ranks(k, true);
		if (!k->rank) {
			good = good &&
			       is_done(ha_gpu_get_nbi(c, k->heap + 2 * PART, peer_address(k, 0),
						      262144, HA_GPU_LATER, LIMIT)) &&
			       is_done(ha_gpu_fence(c, LIMIT)) &&
			       is_done(ha_gpu_signal(c, SIGNAL, 1, 0, LIMIT)) &&
			       is_done(ha_gpu_quiet(c, LIMIT));
			early += good && !has_pattern(k->heap + 2 * PART, 262144, i + 7);
		} else {
			good = good && is_done(ha_gpu_wait(c, SIGNAL, before + i, LIMIT));
			memset(destination_of(k), 0, 262144);
		}
		sync_ranks(k, true);
	}
	if (!good)
		return ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					   "a read, a fence and a signal do not come through");
	return early ? ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					   "%u of %u signals overtook the read before the fence",
					   early, n)
		     : ha_gpu_check_report(k, HA_GPU_CHECK_OK,
					   "%u reads of 256 KiB were whole before what was posted "
					   "after the fence",
					   n);
}

static enum ha_gpu_verdict check_completions(struct ha_gpu_check *k)
{
	unsigned n = 700 * k->rounds;
	bool good = true;

	for (unsigned i = 0; i < n && good; i++) {
		good = is_done(
			ha_gpu_signal(k->conn, SIGNAL + 2, 1, i % 16 ? HA_GPU_LATER : 0, LIMIT));
		if (good && i % 997 == 0)
			good = is_done(ha_gpu_quiet(k->conn, LIMIT));
	}
	good = good && is_done(ha_gpu_quiet(k->conn, LIMIT));
	good = sync_ranks(k, good);
	if (!good || ha_gpu_signal_value(k->conn, SIGNAL + 2) != n)
		return ha_gpu_check_report(
			k, HA_GPU_CHECK_FAILED, "%llu of %u entries are counted as done",
			(unsigned long long)ha_gpu_signal_value(k->conn, SIGNAL + 2), n);
	return ha_gpu_check_report(k, HA_GPU_CHECK_OK,
				   "%u entries, their 16-bit index going round %u times", n,
				   n >> 16);
}

/* ---- paths ---- */

static uint64_t count_switches(struct ha_gpu_check *k)
{
	struct ha_gpu_host_stats s;

	ha_gpu_host_stats(k->host, &s);
	return s.switches;
}

/* A switch may be over and undone before somebody looks, but it was counted. */
static bool await_switch(struct ha_gpu_check *k, uint64_t before)
{
	for (uint64_t end = ha_gpu_now() + LIMIT; count_switches(k) == before; sleep_ms(1))
		if (ha_gpu_now() > end)
			return false;
	return true;
}

/* *from: what the signal was before either rank began; it goes on from there. */
static bool run_traffic(struct ha_gpu_check *k, unsigned n, unsigned seed, uint64_t *from,
			uint64_t *slowest)
{
	struct ha_gpu_conn *c = k->conn;
	uint64_t start;
	bool good = true;

	for (unsigned i = 1; i <= n && good; i++) {
		start = ha_gpu_now();
		fill_pattern(source_of(k), 4096, i + seed);
		good = is_done(ha_gpu_put_nbi(c, peer_address(k, (i & 1) * 4096), source_of(k),
					      4096, 0, LIMIT)) &&
		       is_done(ha_gpu_signal(c, SIGNAL, 1, 0, LIMIT)) &&
		       is_done(ha_gpu_wait(c, SIGNAL, *from + i, LIMIT)) &&
		       has_pattern(destination_of(k) + (i & 1) * 4096, 4096, i + seed) &&
		       is_done(ha_gpu_quiet(c, LIMIT));
		start = ha_gpu_now() - start;
		*slowest = start > *slowest ? start : *slowest;
	}
	*from += n;
	return good;
}

static bool stays_untouched(struct ha_gpu_check *k)
{
	memset(destination_of(k), 0x55, PART);
	sync_ranks(k, true);
	sleep_ms(100);
	for (size_t i = 0; i < PART; i++)
		if (destination_of(k)[i] != 0x55)
			return false;
	return true;
}

/* At both ranks alike. */
static enum ha_gpu_verdict no_failback(struct ha_gpu_check *k)
{
	return ha_gpu_check_report(
		k, HA_GPU_CHECK_NOT_HERE,
		"it needs connections that return to their first path: HA_GPU_FAILBACK=1 at "
		"both ranks");
}

/*
 * As an error completion would, from outside: both ends stop their queue pairs under traffic, and
 * go on over the backup.
 */
static enum ha_gpu_verdict check_stop(struct ha_gpu_check *k)
{
	struct ha_gpu_conn *c = k->conn;
	uint64_t slowest = 0, start = ha_gpu_now(), none = 0, before = count_switches(k),
		 from = ha_gpu_signal_value(c, SIGNAL), back;
	bool good, clean;

	if (!sync_ranks(k, k->config.settings.failback))
		return no_failback(k);
	if (!c->path[1].wqe) {
		sync_ranks(k, true);
		return ha_gpu_check_report(k, HA_GPU_CHECK_NOT_HERE,
					   "the connection has no backup");
	}
	if (!k->rank)
		ha_gpu_cas(&c->error, &none, (ha_gpu_load(&c->cons) & HA_GPU_EPOCH) | 1 << 8);
	good = run_traffic(k, k->rounds, 3, &from, &slowest) && await_switch(k, before);
	good = sync_ranks(k, good);
	clean = stays_untouched(k);
	back = await_value(&c->active, 0, LIMIT);
	sync_ranks(k, true);
	if (!good)
		return ha_gpu_check_report(k, HA_GPU_CHECK_FAILED,
					   "traffic did not go on over the backup");
	if (!clean)
		return ha_gpu_check_report(
			k, HA_GPU_CHECK_FAILED,
			"something landed after both queue pairs had been stopped");
	if (!back)
		return ha_gpu_check_report(
			k, HA_GPU_CHECK_FAILED,
			"the path that was stopped does not come back: does the firmware take "
			"it from RESET to RTS again?");
	return ha_gpu_check_report(
		k, HA_GPU_CHECK_OK,
		"slowest round %llu us, nothing landed late, back on the first path after %llu ms",
		(unsigned long long)slowest / 1000,
		(unsigned long long)(ha_gpu_now() - start) / 1000000);
}

static bool for_a_while(struct ha_gpu_check *k, uint64_t before, uint64_t *from, uint64_t *slowest)
{
	uint64_t end = ha_gpu_now() + k->cut_s * SECOND;
	bool good = true, seen = false;

	while (good && !seen) {
		good = run_traffic(k, 20, 5, from, slowest);
		seen = !sync_ranks(k, good && count_switches(k) == before && ha_gpu_now() < end);
	}
	return good && await_switch(k, before); /* the other rank may have counted its own first */
}

/*
 * The test cuts, or somebody pulls: true when traffic went on over the backup. before, *from:
 * switches of path and the signal's value at the beginning, since the peer may be ahead.
 */
static bool survive_cut(struct ha_gpu_check *k, uint64_t before, uint64_t *from, uint64_t *slowest)
{
	bool good;

	if (!k->cut) {
		good = for_a_while(k, before, from, slowest);
		return sync_ranks(k, good);
	}
	if (k->rank)
		k->cut(k->cut_self, true);
	good = run_traffic(k, k->rounds, 9, from, slowest) && await_switch(k, before);
	good = sync_ranks(k, good);
	if (k->rank)
		k->cut(k->cut_self, false);
	return await_value(&k->conn->active, 0, LIMIT) && good;
}

static enum ha_gpu_verdict check_cut(struct ha_gpu_check *k)
{
	uint64_t slowest = 0, before = count_switches(k),
		 from = ha_gpu_signal_value(k->conn, SIGNAL);
	bool good;

	if (!k->cut && !k->cut_s)
		return ha_gpu_check_report(
			k, HA_GPU_CHECK_NOT_HERE,
			"somebody has to pull a cable: --cut SECONDS says for how long it waits "
			"for that");
	if (!sync_ranks(k, !k->cut || k->config.settings.failback))
		return no_failback(k);
	if (!k->conn->path[1].wqe)
		return ha_gpu_check_report(k, HA_GPU_CHECK_NOT_HERE,
					   "the connection has no backup");
	/* both have counted: who pulls it at once has not pulled it too early */
	if (k->cut_s && k->out && !k->rank) {
		fprintf(k->out, "          pull the cable of the first port within %u s\n",
			k->cut_s);
		fflush(k->out);
	}
	good = survive_cut(k, before, &from, &slowest);
	sync_ranks(k, true);
	return good ? ha_gpu_check_report(k, HA_GPU_CHECK_OK,
					  "traffic went on; slowest round %llu us",
					  (unsigned long long)slowest / 1000)
		    : ha_gpu_check_report(
			      k, HA_GPU_CHECK_FAILED,
			      "traffic did not go on over the backup, or no path failed");
}

static enum ha_gpu_verdict measure_cost(struct ha_gpu_check *k)
{
	unsigned n = 200 * k->rounds;
	uint64_t start, ns;
	bool good = true;

	sync_ranks(k, true);
	start = ha_gpu_now();
	for (unsigned i = 0; i < n && good; i++)
		good = is_done(ha_gpu_put_nbi(k->conn, peer_address(k, 64 * (i % 64)), source_of(k),
					      64, i % 4 < 3 ? HA_GPU_LATER : 0, LIMIT));
	good = good && is_done(ha_gpu_quiet(k->conn, LIMIT));
	ns = ha_gpu_now() - start;
	sync_ranks(k, true);
	if (!good)
		return ha_gpu_check_report(k, HA_GPU_CHECK_FAILED, "it stands still");
	return ha_gpu_check_report(
		k, HA_GPU_CHECK_OK,
		"%u puts of 64 bytes by a thread of the host, four to a doorbell: %llu ns each, "
		"%llu a second",
		n, (unsigned long long)(ns / n), (unsigned long long)(n * SECOND / (ns ? ns : 1)));
}

static enum ha_gpu_verdict report_no_gpu(struct ha_gpu_check *k)
{
	return ha_gpu_check_report(k, HA_GPU_CHECK_NOT_HERE, "%s",
				   k->gpu ? k->gpu : "no kernel takes part");
}

const struct ha_gpu_check_item ha_gpu_check_items[] = {
	{ "ports", "ports that are up, and their backups", check_ports, true },
	{ "queues", "the firmware makes the queues as they are wanted", check_queues, true },
	{ "put", "one put and one signal", check_put, false },
	{ "doorbells", "two queue pairs", check_doorbells, false },
	{ "order", "a signal comes after its data", check_order, false },
	{ "proof", "a read proves placement", check_proof, false },
	{ "inline", "8 bytes in an entry land at once", check_inline, false },
	{ "fence", "a NOP with the fence flag waits for reads", check_fence, false },
	{ "completions", "completions are counted right", check_completions, false },
	{ "stop", "queue pairs in error take nothing more", check_stop, false },
	{ "cut", "a NIC that goes away", check_cut, false },
	{ "cost", "posts", measure_cost, false },
	{ "gpu-doorbell",
	  "the register in the GPU's address space: 64-bit store, the fence before it",
	  report_no_gpu, false },
	{ "gpu-order",
	  "entries in pinned memory are visible to the NIC before the doorbell record, that before "
	  "the register",
	  report_no_gpu, false },
	{ "gpu-memory", "a signal after its data, and a read as proof, in the GPU's own memory",
	  report_no_gpu, false },
};
const unsigned ha_gpu_check_nitems = sizeof(ha_gpu_check_items) / sizeof(ha_gpu_check_items[0]);
