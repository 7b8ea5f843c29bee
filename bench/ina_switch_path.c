/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-ina-switch-path: where the time of a packet goes in one core of ha-switch, in ns per
 * packet: the driver receives, the driver sends, the rest
 *
 * Usage: bench-ina-switch-path [BLOCKS [ROUNDS [CASE]]]   CASE: 2, 4, 8, 16, 32, forward or
 * reflect, and nothing else, for a profiler
 *
 * One thread is sender and switch by turns, in one process with both ends of two memifs, so no line
 * comes from another processor; what is sent is in ina_traffic.h.
 * The switch is ina_core_run() as it is: the sender's turn is a command to its core, which the core
 * carries out between two rounds and which gives it the next one, so a round is what lies between
 * two of them. The driver's two functions are replaced by ones with time stamps around them in
 * rte_eth_fp_ops, which is where the inline functions of DPDK look for them; the stamps themselves
 * are about 1 ns of a packet.
 *
 * Only rounds with two whole bursts count (64 packets). Of those among ROUNDS rounds the third
 * decile is taken, since a round in which another program had the processor is a long one; of
 * BLOCKS such figures, of all cases in turns, the median. The rest is the difference.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/options.h"
#include "bench/ina_traffic.h"
#include "ina/switch/switchd/core.h"

#include <rte_cycles.h>
#include <unistd.h>

#define BLOCKS_MAX 64
#define ROUNDS_MAX 1000000
#define WARM 200 /* rounds that do not count */
#define FULL (2 * INA_BURST)
#define TIME_LIMIT_MS 10000 /* for the cables */

enum part { RECEIVES, SENDS, ALL, PARTS };

/* ---- the folder of the sockets ---- */

static char top[] = "/tmp/hawser-path-XXXXXX";
static bool made;

/* Connected sockets need no names. */
static void remove_folder(void)
{
	if (!made)
		return;
	made = false;
	for (unsigned p = 0; p < 2; p++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/m%u", top, p);
		unlink(path);
		snprintf(path, sizeof(path), "%s/m%u.lock", top, p);
		unlink(path);
	}
	rmdir(top);
}

static void exit_with_error(const char *what)
{
	fprintf(stderr, "bench-ina-switch-path: %s\n", what);
	exit(1);
}

/* ---- the driver, with time stamps ---- */

static struct {
	eth_rx_burst_t receive;
	eth_tx_burst_t send;
	uint64_t cycles[PARTS]; /* of this round */
} driver;

static uint16_t timed_receive(void *queue, struct rte_mbuf **m, const uint16_t n)
{
	uint64_t from = rte_rdtsc();
	uint16_t came = driver.receive(queue, m, n);

	driver.cycles[RECEIVES] += rte_rdtsc() - from;
	return came;
}

static uint16_t timed_send(void *queue, struct rte_mbuf **m, const uint16_t n)
{
	uint64_t from = rte_rdtsc();
	uint16_t taken = driver.send(queue, m, n);

	driver.cycles[SENDS] += rte_rdtsc() - from;
	return taken;
}

/* Of the switch's ports only. */
static void time_driver(const struct ina_port *p)
{
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[p->id];

	driver.receive = ops->rx_pkt_burst;
	driver.send = ops->tx_pkt_burst;
	ops->rx_pkt_burst = timed_receive;
	ops->tx_pkt_burst = timed_send;
}

/* ---- the two ends ---- */

static struct ina_cores all;    /* the switch: one core */
static struct ina_port port[2]; /* the sender's ends */
static struct ina_tx tx[2];
static struct rte_mempool *pool;
static char server[2][128], client[2][128];

static void start_dpdk(void)
{
	struct ina_eal_options o = {
		.program = "bench-ina-switch-path", .nports = 4, .threads = 1, .memory_mb = 192
	};
	char why[256] = "";

	made = mkdtemp(top);
	if (!made || atexit(remove_folder))
		exit_with_error("no folder for the sockets can be made in /tmp");
	for (unsigned p = 0; p < 2; p++) {
		snprintf(server[p], sizeof(server[p]),
			 "net_memif%u,role=server,socket=%s/m%u,socket-abstract=no", p, top, p);
		/*
		 * The driver keeps sockets of a process by name, and one name has one role: so this
		 * end spells it in another way.
		 */
		snprintf(client[p], sizeof(client[p]),
			 "net_memif%u,role=client,socket=%s//m%u,socket-abstract=no", p + 2, top,
			 p);
		o.port[p] = server[p];
		o.port[p + 2] = client[p];
	}
	if (ina_eal_start(&o, why, sizeof(why)))
		exit_with_error(why);
	all.pool = ina_pool_create("packets", 20480, why, sizeof(why));
	pool = ina_pool_create("sender", 8192, why, sizeof(why));
	if (!all.pool || !pool)
		exit_with_error(why);
}

static void open_ports(void)
{
	struct ina_port_config ours = { .pool = pool },
			       theirs = { .pool = all.pool, .promiscuous = true };
	char why[256] = "";

	for (unsigned p = 0; p < 2; p++) {
		if (ina_port_open(&all.port[p], server[p], &theirs, why, sizeof(why)) ||
		    ina_port_open(&port[p], client[p], &ours, why, sizeof(why)))
			exit_with_error(why);
		if (ina_tx_open(&tx[p], &port[p], 0, 1, INA_TRAFFIC_IN_FLIGHT))
			exit_with_error("out of memory");
	}
}

/* Both ends of both; then nobody needs the sockets' names, nor dials. */
static void await_cables(void)
{
	uint64_t until = ha_clock_now(&ha_clock_live) + TIME_LIMIT_MS * HA_NS_PER_MS;

	for (unsigned p = 0; p < 2; p++) {
		while (!ina_port_up(&port[p]) || !ina_port_up(&all.port[p])) {
			if (ha_clock_now(&ha_clock_live) > until)
				exit_with_error("the two ends of a memif did not find each other "
						"within 10 s");
			usleep(1000);
		}
		time_driver(&all.port[p]);
	}
	remove_folder();
}

/* As ha-switch does it without options, but for a queue that all packets in flight have room in. */
static void open_core(void)
{
	const char *no;
	char why[256] = "";

	all.addr = INA_TRAFFIC_ADDR;
	memcpy(all.mac, (const uint8_t[6])INA_TRAFFIC_MAC, 6);
	all.nports = 2;
	all.ncores = 1;
	all.nslots = 65536;
	all.mark = (struct ina_mark_config) { .min = 64, .max = 256, .probability = 0.1 };
	all.queue = INA_TRAFFIC_IN_FLIGHT;
	if (ina_cores_open(&all, why, sizeof(why)))
		exit_with_error(why);
	for (unsigned i = 0; i < INA_TRAFFIC_SIZES; i++) {
		struct ina_group_config g = ina_traffic_group(i);

		if (ina_switch_install(&all.core[0]->sw, &g, &no))
			exit_with_error(no);
	}
}

/* ---- a block of one case ---- */

static struct {
	struct ina_traffic *traffic;
	unsigned wanted, seen;   /* rounds with packets */
	unsigned n;              /* of them with two whole bursts, after WARM */
	uint32_t *cycles[PARTS]; /* of each of these */
	uint64_t from, received; /* when this round began; packets before it */
} block;

static void count_round(uint64_t cycles, uint64_t came)
{
	if (came)
		block.seen++;
	if (came != FULL || block.seen <= WARM || block.n == block.wanted)
		return;
	driver.cycles[ALL] = cycles;
	for (unsigned part = 0; part < PARTS; part++)
		block.cycles[part][block.n] = (uint32_t)driver.cycles[part];
	block.n++;
}

/* All that has come, until nothing does. */
static unsigned take_turn(bool go_on)
{
	unsigned came = 0, n;

	for (unsigned p = 0; p < 2; p++)
		do {
			n = ina_traffic_answer(block.traffic, p, go_on);
			came += n;
		} while (n == INA_BURST);
	return came;
}

/*
 * The command: a round is over, the sender has its turn, and the next round begins. Ends when
 * enough were seen and nothing is under way.
 */
static void between_rounds(void *arg, struct ina_switch *sw, unsigned core)
{
	uint64_t now = rte_rdtsc(), came = all.core[0]->count.received - block.received;
	bool go_on = block.seen < block.wanted + WARM;

	if (block.from)
		count_round(now - block.from, came);
	if (!take_turn(go_on) && !came && block.from)
		all.stop = true;
	atomic_fetch_add_explicit(&all.command_number, 1, memory_order_relaxed);
	memset(&driver.cycles, 0, sizeof(driver.cycles));
	block.received = all.core[0]->count.received;
	block.from = rte_rdtsc();
}

static int compare_cycles(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* ns a packet of each part. */
static void run_block(struct ina_traffic *t, bool reflect, unsigned rounds, double ns[PARTS])
{
	block.traffic = t;
	block.wanted = rounds;
	block.seen = block.n = 0;
	block.from = 0;
	all.reflect = reflect;
	all.stop = false;
	for (unsigned i = 0; i < INA_TRAFFIC_IN_FLIGHT; i++)
		ina_traffic_send(t, pool, i % t->ranks);
	for (unsigned p = 0; p < 2; p++)
		ina_tx_flush(&tx[p]);
	ina_core_run(all.core[0]);
	if (block.n < rounds / 2)
		exit_with_error(
			"packets were lost: fewer than half of the rounds had two whole bursts");
	for (unsigned part = 0; part < PARTS; part++) {
		qsort(block.cycles[part], block.n, sizeof(uint32_t), compare_cycles);
		ns[part] = block.cycles[part][block.n * 3 / 10] * 1e9 / (double)rte_get_tsc_hz() /
			   FULL;
	}
}

/* Each packet was what the slot core expected then, or the times say nothing. */
static void check_verdicts(void)
{
	struct ina_core_counts c;

	ina_cores_count(&all, &c);
	if (c.reason[INA_REASON_EARLY] || c.reason[INA_REASON_WRONG_SLOT] || c.answers_nowhere ||
	    c.no_packet || c.not_spoken)
		exit_with_error("packets were refused by the slot core, or had no answer: what was "
				"measured is not a sum's way");
}

/* ---- the table ---- */

static double figures[INA_TRAFFIC_CASES][PARTS][BLOCKS_MAX];

static int compare_figures(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_figure(unsigned which, enum part part, unsigned blocks)
{
	double v[BLOCKS_MAX];

	memcpy(v, figures[which][part], sizeof(v));
	qsort(v, blocks, sizeof(*v), compare_figures);
	return v[blocks / 2];
}

static double of_row(unsigned which, unsigned row, unsigned blocks)
{
	double all_of_it = median_figure(which, ALL, blocks),
	       receives = median_figure(which, RECEIVES, blocks),
	       sends = median_figure(which, SENDS, blocks);
	double rows[] = { receives, sends, all_of_it - receives - sends, all_of_it,
			  median_figure(INA_TRAFFIC_FORWARD, ALL, blocks) / all_of_it };

	return rows[row];
}

/* forward and reflect first, as everything else is held against them. */
static void print_table(unsigned only, unsigned blocks)
{
	static const unsigned order[INA_TRAFFIC_CASES] = {
		INA_TRAFFIC_FORWARD, INA_TRAFFIC_REFLECT, 0, 1, 2, 3, 4
	};
	static const char *const rows[] = { "the driver receives", "the driver sends",
					    "the rest, ha-switch's", "all", "ratio to forward" };

	printf("%-22s", "ns/packet");
	for (unsigned i = 0; i < INA_TRAFFIC_CASES; i++)
		if (only == INA_TRAFFIC_CASES || only == order[i])
			printf(" %9s", ina_traffic_name(order[i]));
	printf("\n");
	for (unsigned row = 0; row < (only == INA_TRAFFIC_CASES ? 5u : 4u); row++) {
		printf("%-22s", rows[row]);
		for (unsigned i = 0; i < INA_TRAFFIC_CASES; i++)
			if (only == INA_TRAFFIC_CASES || only == order[i])
				printf(row == 4 ? " %9.2f" : " %9.1f",
				       of_row(order[i], row, blocks));
		printf("\n");
	}
}

static void measure_cases(unsigned only, unsigned blocks, unsigned rounds)
{
	static struct ina_traffic traffic[INA_TRAFFIC_CASES]; /* psns go on from block to block */

	for (unsigned i = 0; i < INA_TRAFFIC_CASES; i++)
		ina_traffic_make(&traffic[i], i, port, tx);
	for (unsigned part = 0; part < PARTS; part++) {
		block.cycles[part] = calloc(rounds, sizeof(uint32_t));
		if (!block.cycles[part])
			exit_with_error("out of memory");
	}
	for (unsigned b = 0; b < blocks; b++)
		for (unsigned i = 0; i < INA_TRAFFIC_CASES; i++) {
			double ns[PARTS];

			if (only < INA_TRAFFIC_CASES && i != only)
				continue;
			run_block(&traffic[i], i == INA_TRAFFIC_REFLECT, rounds, ns);
			for (unsigned part = 0; part < PARTS; part++)
				figures[i][part][b] = ns[part];
		}
	for (unsigned part = 0; part < PARTS; part++)
		free(block.cycles[part]);
}

struct options {
	unsigned blocks, rounds, only;
};

static bool take_case(void *target, const struct ha_option_text *given)
{
	struct options *o = target;

	o->only = ina_traffic_case(given->text);
	return o->only != INA_TRAFFIC_CASES;
}

#define HA_TARGET struct options

static const struct ha_option operands[] = {
	{ "BLOCKS", 0, NULL, "of rounds (5)", HA_NUMBER(blocks, 1, BLOCKS_MAX) },
	{ "ROUNDS", 0, NULL, "of a block (4000)", HA_NUMBER(rounds, 1, ROUNDS_MAX) },
	{ "CASE", 0, NULL, "alone (all)",
	  HA_CALL(take_case, "2, 4, 8, 16, 32, forward or reflect") },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-ina-switch-path",
	.about = "Where the time of a packet goes in a core of ha-switch.",
	.operands = operands,
};

int main(int argc, char **argv)
{
	struct options o = { .blocks = 5, .rounds = 4000, .only = INA_TRAFFIC_CASES };
	int result = ha_options_parse(&program, argc, argv, &o);

	if (result)
		return result - 1;
	start_dpdk();
	open_ports();
	await_cables();
	open_core();
	all.command = between_rounds;
	all.command_number = 1;
	measure_cases(o.only, o.blocks, o.rounds);
	check_verdicts();
	print_table(o.only, o.blocks);
	ina_cores_close(&all);
	for (unsigned p = 0; p < 2; p++)
		ina_tx_close(&tx[p]);
	return 0; /* memifs are left to the end of the process (ina/frame/port/port.c) */
}
