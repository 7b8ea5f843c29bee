/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softroce - what the software NIC costs: rate, latency, queue pairs, devices, idleness
 *
 * Usage: bench-softroce CASE, where CASE is one of
 *
 * - rate [SIZE [COUNT]]: WRITEs between two devices of this process, a window of 64
 * - queues [N [SIZE [COUNT]]]: the same from N queue pairs of one device, 64 bytes each, beside the
 *   rate from one
 * - latency [COUNT]: 8-byte WRITEs there and back between two processes, beside a UDP socket that
 *   is polled in the same way
 * - queue-pairs [N]: N queue pairs: memory and time of each, and what the others cost the one that
 *   works
 * - devices [SECONDS]: 1, 2, 4, 8 pairs of devices, a thread each
 * - idle [SECONDS]: processor time of two connected devices with nothing to do
 *
 * Times are of this machine at this moment; compare within one run. A rate is the best of ROUNDS,
 * because what else runs here only ever makes it worse.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"

#define WINDOW 64
#define ROUNDS 10
#define BUFFER (4u << 20)
#define MAX_DEVICES 16

#define MUST(condition)                                                                         \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "bench-softroce: %s:%d: %s (%s)\n", __FILE__, __LINE__, \
				#condition, strerror(errno));                                   \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

struct node {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	union ibv_gid gid;
	char *buf;
};

/* What the other side must know. */
struct card {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

static double read_cpu_time(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_utime.tv_sec + use.ru_stime.tv_sec +
	       (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void node_open(struct node *node, struct ibv_device *device, int cqe)
{
	node->context = ibv_open_device(device);
	MUST(node->context);
	node->pd = ibv_alloc_pd(node->context);
	node->cq = ibv_create_cq(node->context, cqe, NULL, NULL, 0);
	MUST(!posix_memalign((void **)&node->buf, 4096, BUFFER));
	memset(node->buf, 1, BUFFER);
	node->mr = ibv_reg_mr(node->pd, node->buf, BUFFER,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	MUST(node->pd && node->cq && node->mr && !ibv_query_gid(node->context, 1, 0, &node->gid));
}

static struct ibv_qp *qp_create(struct node *node, uint32_t depth)
{
	struct ibv_qp_init_attr init = { .send_cq = node->cq,
					 .recv_cq = node->cq,
					 .cap = { depth, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(node->pd, &init);

	MUST(qp);
	return qp;
}

static struct card card_of(const struct node *node, const struct ibv_qp *qp)
{
	return (struct card) { node->gid, qp->qp_num, node->mr->rkey, (uintptr_t)node->buf };
}

static void qp_connect(struct ibv_qp *qp, const struct card *to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = to->gid, .hop_limit = 64 } },
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = to->qpn,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.timeout = 18, /* 1 s: a busy machine is no dead peer */
		.retry_cnt = 7,
	};

	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void write_post(struct ibv_qp *qp, const struct node *node, const struct card *to,
		       uint32_t size, bool signaled)
{
	struct ibv_sge list = { (uintptr_t)node->buf, size, node->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &list, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = signaled ? IBV_SEND_SIGNALED : 0,
		.wr.rdma = { to->addr, to->rkey },
	}, *bad;

	MUST(!ibv_post_send(qp, &wr, &bad));
}

/* Keeps WINDOW writes under way; polls `other` too, whose NIC is in this thread's hands. */
static void writes_run(struct ibv_qp *qp, struct node *node, struct node *other,
		       const struct card *to, uint32_t size, unsigned count)
{
	struct ibv_wc wc[WINDOW];
	unsigned posted = 0, done = 0;

	while (done < count) {
		int got;

		/* Every 16th one says when it is done, for the others. */
		while (posted < count && posted - done < WINDOW) {
			posted++;
			write_post(qp, node, to, size, posted % 16 == 0 || posted == count);
		}
		got = ibv_poll_cq(node->cq, WINDOW, wc);
		MUST(got >= 0);
		for (int i = 0; i < got; i++) {
			MUST(wc[i].status == IBV_WC_SUCCESS);
			done = count - done < 16 ? count : done + 16;
		}
		if (other)
			ibv_poll_cq(other->cq, WINDOW, wc);
	}
}

/* Seconds per write in the best round, and the processor time of one in it. */
static double writes_best(struct ibv_qp *qp, struct node *node, struct node *other,
			  const struct card *to, uint32_t size, unsigned count, double *used)
{
	double best = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double start = ha_monotonic_s(), before = read_cpu_time();

		writes_run(qp, node, other, to, size, count);
		start = (ha_monotonic_s() - start) / count;
		if (start < best) {
			best = start;
			*used = (read_cpu_time() - before) / count;
		}
	}
	return best;
}

static struct ibv_device **devices_get(int want)
{
	int n;
	struct ibv_device **list = ibv_get_device_list(&n);

	MUST(list && n >= want);
	return list;
}

/* ---- rate ---- */

static int cmd_rate(uint32_t size, unsigned count)
{
	struct ibv_device **list = devices_get(2);
	struct node a, b;
	struct ibv_qp *qa, *qb;
	struct card ca, cb;
	double each, used = 0;

	node_open(&a, list[0], 256);
	node_open(&b, list[1], 256);
	qa = qp_create(&a, 2 * WINDOW);
	qb = qp_create(&b, 2 * WINDOW);
	ca = card_of(&a, qa);
	cb = card_of(&b, qb);
	qp_connect(qa, &cb);
	qp_connect(qb, &ca);
	each = writes_best(qa, &a, &b, &cb, size, count / ROUNDS + 16, &used);
	printf("rate %u B: %.0f messages/s, %.0f MB/s; %.2f us of processor per message, both "
	       "ends\n",
	       size, 1 / each, size / each / (1 << 20), used * 1e6);
	return 0;
}

/* ---- several queue pairs ---- */

/* One of several queue pairs that write at once. */
struct queue {
	struct ibv_qp *qp;
	struct card to;
	unsigned posted, done;
};

static void queue_take(struct queue *queue, unsigned n, const struct ibv_wc *wc, unsigned count)
{
	MUST(wc->status == IBV_WC_SUCCESS);
	for (unsigned i = 0; i < n; i++)
		if (queue[i].qp->qp_num == wc->qp_num)
			queue[i].done = count - queue[i].done < 16 ? count : queue[i].done + 16;
}

/* `count` writes from each, a window of WINDOW of each. */
static void queues_run(struct queue *queue, unsigned n, struct node *from, struct node *to,
		       uint32_t size, unsigned count)
{
	struct ibv_wc wc[WINDOW];
	unsigned open = n;

	for (unsigned i = 0; i < n; i++)
		queue[i].posted = queue[i].done = 0;
	while (open) {
		int got;

		for (unsigned i = 0; i < n; i++) {
			struct queue *q = &queue[i];

			while (q->posted < count && q->posted - q->done < WINDOW) {
				q->posted++;
				write_post(q->qp, from, &q->to, size,
					   q->posted % 16 == 0 || q->posted == count);
			}
		}
		got = ibv_poll_cq(from->cq, WINDOW, wc);
		MUST(got >= 0);
		for (int i = 0; i < got; i++)
			queue_take(queue, n, &wc[i], count);
		ibv_poll_cq(to->cq, WINDOW, wc);
		open = 0;
		for (unsigned i = 0; i < n; i++)
			open += queue[i].done < count;
	}
}

static void queues_connect(struct queue *queue, unsigned n, struct node *a, struct node *b)
{
	for (unsigned i = 0; i < n; i++) {
		struct ibv_qp *qa = qp_create(a, 2 * WINDOW), *qb = qp_create(b, 2 * WINDOW);
		struct card back = card_of(a, qa);

		queue[i] = (struct queue) { .qp = qa, .to = card_of(b, qb) };
		qp_connect(qa, &queue[i].to);
		qp_connect(qb, &back);
	}
}

static int cmd_queues(unsigned n, uint32_t size, unsigned count)
{
	struct ibv_device **list = devices_get(2);
	struct queue *queue = calloc(n, sizeof(*queue));
	struct node a, b;
	double best[2] = { 1e9, 1e9 };

	MUST(queue && n >= 1 && count >= ROUNDS * n);
	node_open(&a, list[0], 8192);
	node_open(&b, list[1], 8192);
	queues_connect(queue, n, &a, &b);
	for (int round = 0; round < 2 * ROUNDS; round++) { /* in turns */
		unsigned many = round % 2 ? n : 1;
		double start = ha_monotonic_s();

		queues_run(queue, many, &a, &b, size, count / ROUNDS / many);
		start = (ha_monotonic_s() - start) / (count / ROUNDS / many * many);
		best[round % 2] = start < best[round % 2] ? start : best[round % 2];
	}
	printf("queues, %u B: %.0f messages/s from one queue pair, %.0f from %u (%.2f times)\n",
	       size, 1 / best[0], 1 / best[1], n, best[0] / best[1]);
	return 0;
}

/* ---- latency ---- */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_latency(const char *what, double *rtt, unsigned n)
{
	qsort(rtt, n, sizeof(*rtt), compare_doubles);
	printf("latency, %-24s %.2f us median, %.2f us at 99 %% (half a round trip)\n", what,
	       rtt[n / 2] / 2 * 1e6, rtt[n - n / 100 - 1] / 2 * 1e6);
}

static void ping_udp(int fd, bool first, unsigned count, double *rtt)
{
	uint64_t word = 0;

	for (unsigned i = 0; i < count; i++) {
		double start = ha_monotonic_s();

		if (first)
			MUST(send(fd, &word, 8, 0) == 8);
		while (recv(fd, &word, 8, MSG_DONTWAIT) != 8)
			sched_yield();
		if (!first)
			MUST(send(fd, &word, 8, 0) == 8);
		rtt[i] = ha_monotonic_s() - start;
	}
}

static int udp_socket(uint16_t own, uint16_t peer)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	to.sin_port = htons(own);
	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&to, sizeof(to)));
	to.sin_port = htons(peer);
	MUST(!connect(fd, (struct sockaddr *)&to, sizeof(to)));
	return fd;
}

static void ping_verbs(int fd, bool first, unsigned count, double *rtt)
{
	struct ibv_device **list = devices_get(1);
	struct node node;
	struct ibv_qp *qp;
	struct card mine, theirs;
	volatile uint64_t *in;

	node_open(&node, list[0], 256);
	qp = qp_create(&node, 2 * WINDOW);
	mine = card_of(&node, qp);
	MUST(write(fd, &mine, sizeof(mine)) == sizeof(mine) &&
	     read(fd, &theirs, sizeof(theirs)) == sizeof(theirs));
	qp_connect(qp, &theirs);
	theirs.addr += 64; /* what I get lies at 64, what I send at 0 */
	in = (volatile uint64_t *)(node.buf + 64);
	MUST(write(fd, "", 1) == 1 && read(fd, &(char) { 0 }, 1) == 1);
	for (uint64_t i = 0; i < count; i++) {
		struct ibv_wc wc[16];
		double start = ha_monotonic_s();

		if (first) {
			*(uint64_t *)node.buf = i + 1000;
			write_post(qp, &node, &theirs, 8, true);
		}
		do { /* once at least: it gives back the places of what was sent */
			int n = ibv_poll_cq(node.cq, 16, wc);

			for (int k = 0; k < n; k++)
				MUST(wc[k].status == IBV_WC_SUCCESS);
		} while (*in != i + 1000);
		if (!first) {
			*(uint64_t *)node.buf = i + 1000;
			write_post(qp, &node, &theirs, 8, true);
		}
		rtt[i] = ha_monotonic_s() - start;
	}
	MUST(write(fd, "", 1) == 1 && read(fd, &(char) { 0 }, 1) == 1);
}

static int cmd_latency(unsigned count)
{
	double *rtt = calloc(count, sizeof(*rtt));
	uint16_t port = (uint16_t)(30000 + getpid() % 10000);
	int pair[2], udp[2] = { udp_socket(port, (uint16_t)(port + 1)),
				udp_socket((uint16_t)(port + 1), port) };
	pid_t child;

	MUST(rtt && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	child = fork();
	MUST(child >= 0);
	for (int round = 0; round < 3; round++) {
		ping_udp(udp[!child], child, count, rtt);
		if (child)
			print_latency("UDP sockets, polled:", rtt, count);
	}
	ping_verbs(pair[!child], child, count, rtt);
	if (!child)
		_exit(0);
	print_latency("8-byte WRITE:", rtt, count);
	MUST(waitpid(child, NULL, 0) == child);
	return 0;
}

/* ---- queue pairs ---- */

static double read_resident_bytes(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	MUST(f && fscanf(f, "%*d %ld", &pages) == 1);
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static int cmd_queue_pairs(unsigned n)
{
	struct ibv_device **list = devices_get(2);
	struct ibv_qp **qp = calloc(n, sizeof(*qp));
	struct card *card = calloc(n, sizeof(*card));
	struct node node[2];
	double start, before, alone, among, all, used;

	n &= ~1u;
	node_open(&node[0], list[0], 65536);
	node_open(&node[1], list[1], 65536);
	MUST(n >= 2 && qp && card);
	for (unsigned i = 0; i < 2; i++) {
		qp[i] = qp_create(&node[i], 2 * WINDOW);
		card[i] = card_of(&node[i], qp[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		qp_connect(qp[i], &card[!i]);
	alone = writes_best(qp[0], &node[0], &node[1], &card[1], 8, 20000, &used);
	before = read_resident_bytes();
	start = ha_monotonic_s();
	for (unsigned i = 2; i < n; i++) {
		qp[i] = qp_create(&node[i & 1], 16);
		card[i] = card_of(&node[i & 1], qp[i]);
	}
	for (unsigned i = 2; i < n; i++)
		qp_connect(qp[i], &card[i ^ 1]);
	start = ha_monotonic_s() - start;
	printf("queue pairs: %u in this process, each %.0f bytes and %.1f us to create and "
	       "connect: %.0f connections a second\n",
	       n, (read_resident_bytes() - before) / (n - 2), start / (n - 2) * 1e6,
	       (n - 2) / start / 2);
	among = writes_best(qp[0], &node[0], &node[1], &card[1], 8, 20000, &used);
	start = ha_monotonic_s();
	for (unsigned i = 0; i < n; i += 2)
		writes_run(qp[i], &node[0], &node[1], &card[i + 1], 8, 1);
	all = ha_monotonic_s() - start;
	printf("queue pairs: 8-byte WRITEs take %.2f us alone, %.2f us among %u idle ones (%.2f "
	       "times); "
	       "one on each in turn, waited for: %.1f us\n",
	       alone * 1e6, among * 1e6, n - 2, among / alone, all / (n / 2) * 1e6);
	return 0;
}

/* ---- devices ---- */

struct lane {
	struct ibv_device *device[2];
	double seconds, moved;
	pthread_t thread;
};

static void *lane_run(void *arg)
{
	struct lane *lane = arg;
	struct node node[2];
	struct ibv_qp *qp[2];
	struct card card[2];
	double end;

	for (int i = 0; i < 2; i++) {
		node_open(&node[i], lane->device[i], 256);
		qp[i] = qp_create(&node[i], 2 * WINDOW);
		card[i] = card_of(&node[i], qp[i]);
	}
	for (int i = 0; i < 2; i++)
		qp_connect(qp[i], &card[!i]);
	for (end = ha_monotonic_s() + lane->seconds; ha_monotonic_s() < end; lane->moved += 32.0)
		writes_run(qp[0], &node[0], &node[1], &card[1], 1 << 20, 32);
	return NULL;
}

/* Sixteen subnets, when the caller has not said where. */
static void devices_name(void)
{
	char text[MAX_DEVICES * 24];
	size_t n = 0;

	for (int i = 0; i < MAX_DEVICES; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s127.%d.0.0/24", i ? "," : "",
				      200 + i);
	setenv("SOFTROCE_DEVICES", text, 0);
}

static int cmd_devices(double seconds)
{
	struct ibv_device **list;
	double one = 0;

	devices_name();
	list = devices_get(MAX_DEVICES);
	for (int pairs = 1; pairs <= MAX_DEVICES / 2; pairs *= 2) {
		struct lane lane[MAX_DEVICES / 2] = { 0 };
		double start = ha_monotonic_s(), used = read_cpu_time(), moved = 0;

		for (int i = 0; i < pairs; i++) {
			lane[i].device[0] = list[2 * i];
			lane[i].device[1] = list[2 * i + 1];
			lane[i].seconds = seconds;
			MUST(!pthread_create(&lane[i].thread, NULL, lane_run, &lane[i]));
		}
		for (int i = 0; i < pairs; i++) {
			MUST(!pthread_join(lane[i].thread, NULL));
			moved += lane[i].moved;
		}
		moved /= ha_monotonic_s() - start;
		one = pairs == 1 ? moved : one;
		printf("devices: %d pair%s of NICs: %.0f MB/s, %.2f times one pair's; %.1f "
		       "processors busy\n",
		       pairs, pairs > 1 ? "s" : "", moved, moved / one,
		       (read_cpu_time() - used) / (ha_monotonic_s() - start));
	}
	return 0;
}

/* ---- idle ---- */

static int cmd_idle(double seconds)
{
	struct ibv_device **list = devices_get(2);
	struct node a, b;
	struct ibv_qp *qa, *qb;
	struct card ca, cb;
	double used;

	node_open(&a, list[0], 256);
	node_open(&b, list[1], 256);
	qa = qp_create(&a, 2 * WINDOW);
	qb = qp_create(&b, 2 * WINDOW);
	ca = card_of(&a, qa);
	cb = card_of(&b, qb);
	qp_connect(qa, &cb);
	qp_connect(qb, &ca);
	writes_run(qa, &a, &b, &cb, 8, 1000);
	usleep(100000);
	used = read_cpu_time();
	usleep((useconds_t)(seconds * 1e6));
	printf("idle: %.4f %% of a processor for two connected devices\n",
	       (read_cpu_time() - used) / seconds * 100);
	return 0;
}

/* ---- what there is ---- */

/* Each with its numbers as given; 0: not given. */
static int start_rate(const double *given)
{
	return cmd_rate(given[0] ? (uint32_t)given[0] : 8, given[1] ? (unsigned)given[1] : 200000);
}

static int start_queues(const double *given)
{
	return cmd_queues(given[0] ? (unsigned)given[0] : 8, given[1] ? (uint32_t)given[1] : 64,
			  given[2] ? (unsigned)given[2] : 200000);
}

static int start_latency(const double *given)
{
	return cmd_latency(given[0] ? (unsigned)given[0] : 20000);
}

static int start_queue_pairs(const double *given)
{
	return cmd_queue_pairs(given[0] ? (unsigned)given[0] : 10000);
}

static int start_devices(const double *given)
{
	return cmd_devices(given[0] ? given[0] : 2);
}

static int start_idle(const double *given)
{
	return cmd_idle(given[0] ? given[0] : 5);
}

static const struct {
	const char *name;
	int (*start)(const double *given);
} parts[] = {
	{ "rate", start_rate },       { "queues", start_queues },
	{ "latency", start_latency }, { "queue-pairs", start_queue_pairs },
	{ "devices", start_devices }, { "idle", start_idle },
};

#define NUMBERS_MAX 3

struct arguments {
	const char *part, *number[NUMBERS_MAX];
	unsigned numbers;
};

#define HA_TARGET struct arguments

static const struct ha_option operands[] = {
	{ "PART", 0, NULL, "what to measure", HA_TEXT(part) },
	{ "NUMBER", 0, NULL, "of the part, in its order", HA_LIST(number, numbers, NUMBERS_MAX) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "bench-softroce",
	.synopsis = "rate [SIZE [COUNT]]\nqueues [N [SIZE [COUNT]]]\nlatency [COUNT]\n"
		    "queue-pairs [N]\ndevices [SECONDS]\nidle [SECONDS]",
	.about = "What the software NIC costs.",
	.operands = operands,
	.needed = 1,
};

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	int stop = ha_options_parse(&program, argc, argv, &arguments);
	double given[NUMBERS_MAX] = { 0 };

	if (stop)
		return stop - 1;
	for (unsigned i = 0; i < arguments.numbers; i++)
		given[i] = atof(arguments.number[i]);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(arguments.part, parts[i].name))
			return parts[i].start(given);
	return ha_program_refuse(&program, "there is no part '%s'", arguments.part) - 1;
}
