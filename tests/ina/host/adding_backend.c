/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adding_backend.c - a stand-in for ha-backend without network or controller: it adds what the
 * clients of this host bring
 *
 *   adding_backend --socket PATH [--address A.B.C.D] [faults]
 *
 * It prints "ready" when clients may attach, and ends when its standard input does (or when it is
 * killed). Any ha_ina_group_create() gets a group, whatever the members' addresses; its ranks are
 * those who join with the ticket, all on this host. Sums are made by the slot core from blocks of
 * 64 words, as a switch makes them, so they have its rounding, saturation and flags.
 *
 * Faults; segments of every group are counted from 0, in the order in which they are added:
 *   --eagain          no group is created: -EAGAIN
 *   --mute            who asks for a group, or to join one, gets no answer
 *   --timeout-at N    the group ends at segment N with -ETIMEDOUT
 *   --cancel-at N     the same with -ECANCELED
 *   --said-ms N       why a group has ended is said so long after its requests have their responses
 *   --silent-at N     segment N is never answered, nor any after it
 *   --spoil-at N      one word of the sum of segment N has a wrong bit, at all ranks
 *   --die-at N        the backend kills itself when segment N is complete, some ranks' responses
 *                     given
 *   --delay-us N      each segment's responses come so late
 *   --reverse         a group's segments are added from the newest that all have brought to the
 *                     oldest
 *   --peer-ms N       a group ends with -ETIMEDOUT when a rank is so late (default 60000)
 */
#include "base/clock.h"
#include "ina/frame/bytes.h"
#include "ina/frame/quant.h"
#include "ina/host/shm/server.h"
#include "ina/switch/step.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#define GROUPS 256
#define NEVER UINT64_MAX

struct pending {
	TAILQ_ENTRY(pending) link;
	struct ina_shm_request request;
};

struct member {
	struct ina_shm_peer *peer; /* NULL: not here, or no more */
	TAILQ_HEAD(, pending) requests;
	unsigned waiting; /* so many */
};

struct group {
	uint32_t id; /* 0: none; the handle, and in the ticket */
	unsigned ranks;
	uint32_t joined; /* ranks that have, each once */
	struct member member[HA_INA_RANKS];
	uint64_t segments; /* added so far */
	uint64_t waits;    /* since when somebody's request waits for somebody, ns; 0: none does */
	int ended;
};

static struct group groups[GROUPS];
static uint32_t ids;
static struct ina_shm_peer *peers[256];
static unsigned peer_count;
static struct {
	bool eagain, mute, reverse;
	uint64_t timeout_at, cancel_at, silent_at, spoil_at, die_at, delay_us, reason_ms, peer_ms;
} set = { .timeout_at = NEVER,
	  .cancel_at = NEVER,
	  .silent_at = NEVER,
	  .spoil_at = NEVER,
	  .die_at = NEVER,
	  .peer_ms = 60000 };

static struct group *group_of(uint32_t id)
{
	struct group *g = &groups[id % GROUPS];

	return id && g->id == id ? g : NULL;
}

static struct member *member_of(struct group *g, const struct ina_shm_peer *peer, unsigned rank)
{
	for (unsigned r = 0; g && r < g->ranks; r++)
		if (g->member[r].peer == peer && (rank == HA_INA_RANKS || rank == r))
			return &g->member[r];
	return NULL;
}

/* ---- the end of a group ---- */

static void send_response(struct member *m, int result, unsigned met)
{
	struct pending *p = TAILQ_FIRST(&m->requests);
	struct ina_shm_response response = { p->request.sequence, result, met };

	TAILQ_REMOVE(&m->requests, p, link);
	m->waiting--;
	free(p);
	if (m->peer)
		ina_shm_peer_respond(m->peer, &response);
}

static void end_group(struct group *g, int err, const char *text)
{
	if (g->ended)
		return;
	g->ended = err;
	for (unsigned r = 0; r < g->ranks; r++)
		while (g->member[r].waiting)
			send_response(&g->member[r], err, 0);
	usleep((useconds_t)set.reason_ms * 1000);
	for (unsigned r = 0; r < g->ranks; r++)
		if (g->member[r].peer)
			ina_shm_peer_state(g->member[r].peer, g->id, err, text);
}

static void leave_group(struct group *g, struct member *m)
{
	end_group(g, -ECANCELED, "a rank has left the group");
	m->peer = NULL;
	for (unsigned r = 0; r < g->ranks; r++)
		if (g->member[r].peer)
			return;
	g->id = 0; /* the last one */
}

/* ---- a segment ---- */

static uint8_t *data_of(const struct member *m)
{
	uint64_t bytes;

	return ina_shm_peer_buffer(m->peer, &bytes) + TAILQ_FIRST(&m->requests)->request.offset;
}

/* One block of 64 words of all ranks, into the slot. */
static void add_block(struct group *g, const struct ina_shm_request *q, struct ina_slot *slot,
		      size_t at)
{
	struct ina_frame f = { .extended = true, .coll = q->coll, .root = q->root };
	const struct ina_quant *quant = ina_quant_best();
	uint8_t words[INA_PAYLOAD_BYTES];

	ina_step_take(slot, &f);
	for (unsigned r = 0; r < g->ranks; r++) {
		struct ina_block block = { 0 };
		const uint8_t *from = data_of(&g->member[r]) + at;

		f.rank = (uint8_t)r;
		f.words = words;
		if (q->type == HA_INA_FLOAT32)
			block = quant->block((const float *)from, words,
					     ina_quant_headroom(g->ranks));
		else
			quant->swap(from, words, INA_WORDS);
		f.exponent = block.exponent;
		f.flags = block.flags;
		ina_step_add(slot, &f, g->ranks);
	}
}

static bool gets_result(const struct ina_shm_request *q, unsigned rank)
{
	if (q->coll == HA_INA_ALL_REDUCE)
		return true;
	return (rank == q->root) == (q->coll == HA_INA_REDUCE || q->coll == HA_INA_REDUCE_SCATTER);
}

static unsigned sum_blocks(struct group *g, const struct ina_shm_request *q)
{
	const struct ina_quant *quant = ina_quant_best();
	unsigned met = 0;

	for (size_t at = 0; at < q->bytes; at += INA_PAYLOAD_BYTES) {
		struct ina_slot slot = { 0 };

		add_block(g, q, &slot, at);
		if (!at && g->segments - 1 == set.spoil_at)
			slot.word[7] ^= 1 << 8; /* big-endian */
		met |= (slot.flags & INA_F_OVERFLOW ? HA_INA_SATURATED : 0) |
		       (slot.flags & INA_F_NONFINITE ? HA_INA_NONFINITE : 0);
		for (unsigned r = 0; r < g->ranks; r++) {
			uint8_t *to = data_of(&g->member[r]) + at;
			struct ina_block block = { slot.exponent, slot.flags };

			if (!gets_result(q, r))
				continue;
			if (q->type == HA_INA_FLOAT32)
				quant->unblock((const uint8_t *)slot.word, block, (float *)to);
			else
				quant->swap(slot.word, to, INA_WORDS);
		}
	}
	return met;
}

/* All ranks' first requests are one collective? */
static bool requests_agree(const struct group *g)
{
	const struct ina_shm_request *a = &TAILQ_FIRST(&g->member[0].requests)->request;

	for (unsigned r = 1; r < g->ranks; r++) {
		const struct ina_shm_request *b = &TAILQ_FIRST(&g->member[r].requests)->request;

		if (a->coll != b->coll || a->type != b->type || a->root != b->root ||
		    a->bytes != b->bytes)
			return false;
	}
	return a->root < g->ranks;
}

static void run_segment(struct group *g)
{
	struct ina_shm_request q = TAILQ_FIRST(&g->member[0].requests)->request;
	uint64_t n = g->segments++;
	unsigned met = 0;

	if (!requests_agree(g)) {
		end_group(g, -ECANCELED, "the ranks do not ask for the same collective");
		return;
	}
	if (n == set.timeout_at || n == set.cancel_at) {
		end_group(g, n == set.timeout_at ? -ETIMEDOUT : -ECANCELED, "as the test wants it");
		return;
	}
	if (q.coll == HA_INA_BROADCAST || q.coll == HA_INA_ALL_GATHER) {
		for (unsigned r = 0; r < g->ranks; r++)
			if (r != q.root)
				memcpy(data_of(&g->member[r]), data_of(&g->member[q.root]),
				       q.bytes);
	} else {
		met = sum_blocks(g, &q);
	}
	if (set.delay_us)
		usleep((useconds_t)set.delay_us);
	for (unsigned r = 0; r < g->ranks; r++) {
		if (n == set.die_at && r == g->ranks / 2)
			raise(SIGKILL);
		send_response(&g->member[r], 0, met);
	}
}

/* Brings the newest request that all have to the front. */
static void newest_first(struct group *g, unsigned depth)
{
	for (unsigned r = 0; r < g->ranks; r++) {
		struct member *m = &g->member[r];
		struct pending *p = TAILQ_FIRST(&m->requests);

		for (unsigned i = 1; i < depth; i++)
			p = TAILQ_NEXT(p, link);
		TAILQ_REMOVE(&m->requests, p, link);
		TAILQ_INSERT_HEAD(&m->requests, p, link);
	}
}

static bool work_on(struct group *g)
{
	unsigned all = UINT32_MAX, any = 0;

	for (unsigned r = 0; r < g->ranks; r++) {
		all = g->member[r].waiting < all ? g->member[r].waiting : all;
		any |= g->member[r].waiting;
	}
	if (!all || g->segments >= set.silent_at) {
		if (any && !g->waits)
			g->waits = ha_clock_now(&ha_clock_live);
		if (any && ha_clock_now(&ha_clock_live) - g->waits > set.peer_ms * 1000000)
			end_group(g, -ETIMEDOUT, "a rank has brought nothing for too long");
		return false;
	}
	g->waits = 0;
	if (set.reverse)
		newest_first(g, all);
	run_segment(g);
	return true;
}

/* ---- clients ---- */

/* Each request goes to its group's member. */
static bool fetch_requests(struct ina_shm_peer *peer)
{
	struct ina_shm_request q;
	bool any = false;

	while (ina_shm_peer_next(peer, &q) > 0) {
		struct group *g = group_of(q.group);
		/* A process that is several ranks of one group joins with one context for each. */
		struct member *m = member_of(g, peer, HA_INA_RANKS);
		struct pending *p = calloc(1, sizeof(*p));

		any = true;
		if (!m || !p) {
			free(p);
			ina_shm_peer_end(peer, "a request names a group that is not this client's");
			return any;
		}
		p->request = q;
		TAILQ_INSERT_TAIL(&m->requests, p, link);
		m->waiting++;
		if (g->ended)
			send_response(m, g->ended, 0);
	}
	return any;
}

static void add_peer(void *arg, struct ina_shm_peer *peer)
{
	peers[peer_count++] = peer;
}

static void handle_create(void *arg, struct ina_shm_peer *peer, uint32_t serial,
			  const struct ina_shm_create *spec)
{
	uint8_t ticket[HA_INA_TICKET] = "adding_backend";
	struct group *g = &groups[++ids % GROUPS];

	if (set.mute)
		return;
	if (set.eagain || g->id) {
		ina_shm_answer_refused(peer, serial, -EAGAIN,
				       "no switch has a group left: do without");
		return;
	}
	memset(g, 0, sizeof(*g));
	g->id = ids;
	g->ranks = spec->ranks;
	for (unsigned r = 0; r < g->ranks; r++)
		TAILQ_INIT(&g->member[r].requests);
	ina_put32(ticket + 16, g->id);
	ina_shm_answer_ticket(peer, serial, ticket);
}

static void handle_join(void *arg, struct ina_shm_peer *peer, uint32_t serial,
			const uint8_t ticket[HA_INA_TICKET], uint32_t rank)
{
	struct group *g =
		memcmp(ticket, "adding_backend", 15) ? NULL : group_of(ina_get32(ticket + 16));

	if (set.mute)
		return;
	if (!g || g->ended)
		ina_shm_answer_refused(peer, serial, -ECANCELED, "the ticket's group has ended");
	else if (rank >= g->ranks || g->joined >> rank & 1 || member_of(g, peer, HA_INA_RANKS))
		ina_shm_answer_refused(
			peer, serial, -EINVAL,
			"a ticket is good once for each rank, and one rank a client");
	else {
		g->joined |= 1u << rank;
		g->member[rank].peer = peer;
		ina_shm_answer_joined(peer, serial, g->id, rank, g->ranks);
	}
}

static void handle_leave(void *arg, struct ina_shm_peer *peer, uint32_t serial, uint32_t handle,
			 int err)
{
	struct member *m;

	fetch_requests(peer); /* what it pushed before it left */
	m = member_of(group_of(handle), peer, HA_INA_RANKS);
	if (!m) {
		ina_shm_answer_refused(peer, serial, -EINVAL, "no such group");
		return;
	}
	leave_group(group_of(handle), m);
	ina_shm_answer_left(peer, serial, handle);
}

static void ignore_bell(void *arg, struct ina_shm_peer *peer)
{
}

static void remove_peer(void *arg, struct ina_shm_peer *peer, const char *why)
{
	for (unsigned i = 0; i < GROUPS; i++) {
		struct member *m = groups[i].id ? member_of(&groups[i], peer, HA_INA_RANKS) : NULL;

		if (m)
			leave_group(&groups[i], m);
	}
	for (unsigned i = 0; i < peer_count; i++)
		if (peers[i] == peer)
			peers[i--] = peers[--peer_count];
	ina_shm_peer_release(peer);
}

static const struct ina_shm_server_ops ops = { add_peer,     handle_create, handle_join,
					       handle_leave, ignore_bell,   remove_peer };

/* ---- the program ---- */

static bool work_on_all(void)
{
	bool any = false;

	for (unsigned i = 0; i < peer_count; i++)
		any |= fetch_requests(peers[i]);
	for (unsigned i = 0; i < GROUPS; i++)
		if (groups[i].id && !groups[i].ended)
			any |= work_on(&groups[i]);
	return any;
}

static bool may_sleep(void)
{
	bool may = true;

	for (unsigned i = 0; i < peer_count; i++)
		may &= ina_shm_peer_sleep(peers[i]);
	return may;
}

/* False: standard input has ended. */
static bool serve_once(struct ina_shm_server *server)
{
	struct pollfd p[2] = { { ina_shm_server_fd(server), POLLIN, 0 },
			       { STDIN_FILENO, POLLIN, 0 } };
	char byte;

	while (work_on_all())
		ina_shm_server_poll(server, 0);
	if (may_sleep())
		poll(p, 2, 20);
	for (unsigned i = 0; i < peer_count; i++)
		ina_shm_peer_awake(peers[i]);
	ina_shm_server_poll(server, 0);
	return !(p[1].revents && read(STDIN_FILENO, &byte, 1) <= 0);
}

static const struct option options[] = {
	{ "socket", 1, NULL, 's' },    { "address", 1, NULL, 'a' },
	{ "eagain", 0, NULL, 'e' },    { "timeout-at", 1, NULL, 't' },
	{ "cancel-at", 1, NULL, 'c' }, { "silent-at", 1, NULL, 'i' },
	{ "spoil-at", 1, NULL, 'S' },  { "die-at", 1, NULL, 'd' },
	{ "delay-us", 1, NULL, 'u' },  { "reverse", 0, NULL, 'r' },
	{ "mute", 0, NULL, 'm' },      { "peer-ms", 1, NULL, 'p' },
	{ "said-ms", 1, NULL, 'w' },   { NULL, 0, NULL, 0 },
};

/* The options that set a number, and those that set a switch. */
static const struct {
	int option;
	uint64_t *number;
	bool *flag;
} settings[] = {
	{ 't', &set.timeout_at, NULL }, { 'c', &set.cancel_at, NULL },
	{ 'i', &set.silent_at, NULL },  { 'S', &set.spoil_at, NULL },
	{ 'd', &set.die_at, NULL },     { 'u', &set.delay_us, NULL },
	{ 'p', &set.peer_ms, NULL },    { 'w', &set.reason_ms, NULL },
	{ 'e', NULL, &set.eagain },     { 'r', NULL, &set.reverse },
	{ 'm', NULL, &set.mute },
};

static bool set_one(int option, const char *text)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		if (settings[i].option != option)
			continue;
		if (settings[i].number)
			*settings[i].number = strtoull(text, NULL, 10);
		else
			*settings[i].flag = true;
		return true;
	}
	return false;
}

static int parse_options(int argc, char **argv, struct ina_shm_server_config *config)
{
	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
		if (o == 's')
			config->path = optarg;
		else if (o == 'a')
			config->address = ntohl(inet_addr(optarg));
		else if (!set_one(o, optarg))
			return -1;
	}
	return config->path && optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct ina_shm_server_config config = { .address = 0x7f000001, .peers = 256 };
	struct ina_shm_server *server;
	char why[256];

	if (parse_options(argc, argv, &config)) {
		fprintf(stderr,
			"usage: %s --socket PATH [options]; adding_backend.c explains them\n",
			argv[0]);
		return 2;
	}
	server = ina_shm_server_open(&config, &ops, NULL, why, sizeof(why));
	if (!server) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (serve_once(server))
		;
	ina_shm_server_close(server);
	return 0;
}
