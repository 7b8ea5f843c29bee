/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/host/backend/fabric.h"

#include "base/check.h"
#include "base/clock.h"
#include "ina/switch/switch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#define SLOTS 16384u
#define PORTS 32u
#define SWITCH_ADDR 0x0afffffeu
#define LATE 12 /* frames that overtake one that is late */

struct packet {
	STAILQ_ENTRY(packet) link;
	size_t len;
	unsigned overtaken;
	uint8_t bytes[INA_FRAME_MAX];
};

struct queue {
	STAILQ_HEAD(, packet) waiting, given;
	int fd;
};

struct port {
	struct ha_net net;
	struct fabric *fabric;
	struct queue queue[INA_WORKERS_MAX];
	bool open;
};

struct incarnation {
	struct ha_group_facts facts;
	uint64_t incarnation[INA_RANKS_MAX];
	uint32_t left;
	unsigned waited[INA_RANKS_MAX]; /* slow creations since the rank's lease was renewed */
	bool incarnations, reset;
};

struct fabric {
	pthread_mutex_t lock; /* everything */
	pthread_cond_t work, controller;
	pthread_t thread;
	bool stop, down, controller_down, controller_hangs;
	unsigned creating; /* calls that are creating a group, or wait to */
	struct ha_group_defaults defaults;
	struct fabric_faults faults;
	uint64_t dice, hurt;
	unsigned aborts_lost; /* as many more of them */
	struct queue in;
	struct packet *late;
	struct port *port[PORTS];
	struct ina_switch sw;
	struct ina_slot *slot;
	struct incarnation incarnation[INA_GROUPS];
	uint32_t epoch[INA_GROUPS];
	uint8_t last;
	unsigned until_down; /* blocks; 0: it does not go down by itself */
	unsigned hidden_us, searches;
	unsigned create_us, longest_wait;
};

struct authority {
	struct ha_authority authority;
	struct fabric *fabric;
};

static bool draw_chance(struct fabric *f, unsigned of_1000)
{
	f->dice = f->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return of_1000 && (f->dice >> 33) % 1000 < of_1000;
}

static void init_queue(struct queue *q, int fd)
{
	STAILQ_INIT(&q->waiting);
	STAILQ_INIT(&q->given);
	q->fd = fd;
}

static void append_packet(struct queue *q, struct packet *p)
{
	uint64_t one = 1;

	STAILQ_INSERT_TAIL(&q->waiting, p, link);
	if (q->fd >= 0 && write(q->fd, &one, sizeof(one)) < 0)
		abort();
}

static struct packet *take_packet(struct queue *q)
{
	struct packet *p = STAILQ_FIRST(&q->waiting);

	if (p)
		STAILQ_REMOVE_HEAD(&q->waiting, link);
	return p;
}

static struct packet *packet_of(const struct ina_frame *frame)
{
	struct packet *p = calloc(1, sizeof(*p));

	CHECK(p);
	p->len = ina_frame_encode(frame, p->bytes);
	return p;
}

/* ---- the switch ---- */

static void deliver_packet(struct fabric *f, struct packet *p)
{
	struct ina_frame frame;

	if (ina_frame_decode(p->bytes, p->len, &frame)) {
		free(p);
		return;
	}
	for (unsigned i = 0; i < PORTS; i++)
		if (f->port[i] && f->port[i]->open && f->port[i]->net.addr == frame.dst) {
			append_packet(&f->port[i]->queue[frame.worker], p);
			return;
		}
	free(p);
}

static void send_answer(struct fabric *f, const struct ina_verdict *v, uint8_t rank)
{
	struct ina_frame frame;

	ina_switch_answer(&f->sw, v, rank, &frame);
	if (draw_chance(f, f->faults.lose)) {
		f->hurt++;
		return;
	}
	if (draw_chance(f, f->faults.twice)) {
		f->hurt++;
		deliver_packet(f, packet_of(&frame));
	}
	deliver_packet(f, packet_of(&frame));
}

static void step_switch(struct fabric *f, struct packet *p)
{
	struct ina_frame frame;
	struct ina_verdict v;

	if (!f->down && !ina_frame_decode(p->bytes, p->len, &frame)) {
		ina_switch_step(&f->sw, ha_clock_now(&ha_clock_live), &frame, &v);
		if (v.action == INA_ANSWER_ONE)
			send_answer(f, &v, v.answer.rank);
		for (unsigned r = 0; v.action == INA_ANSWER_ALL && r < ina_switch_ranks(&f->sw, &v);
		     r++)
			send_answer(f, &v, (uint8_t)r);
		if (v.action == INA_ANSWER_ALL && f->until_down && !--f->until_down)
			f->down = true;
	}
	free(p);
}

static void release_late_packet(struct fabric *f)
{
	if (!f->late || ++f->late->overtaken < LATE)
		return;
	step_switch(f, f->late);
	f->late = NULL;
}

static bool lost_abort(struct fabric *f, const struct packet *p)
{
	struct ina_frame frame;

	if (!f->aborts_lost || ina_frame_decode(p->bytes, p->len, &frame) ||
	    !(frame.flags & INA_F_ABORT))
		return false;
	f->aborts_lost--;
	return true;
}

static void handle_packet(struct fabric *f, struct packet *p)
{
	struct packet *copy;

	if (lost_abort(f, p) || draw_chance(f, f->faults.lose)) {
		f->hurt++;
		free(p);
	} else if (!f->late && draw_chance(f, f->faults.late)) {
		f->hurt++;
		f->late = p;
	} else {
		if (draw_chance(f, f->faults.twice)) {
			f->hurt++;
			copy = malloc(sizeof(*copy));
			CHECK(copy);
			*copy = *p;
			step_switch(f, copy);
		}
		step_switch(f, p);
	}
	release_late_packet(f);
}

static void *run_fabric(void *arg)
{
	struct fabric *f = arg;
	struct packet *p;

	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		p = take_packet(&f->in);
		if (p)
			handle_packet(f, p);
		else
			pthread_cond_wait(&f->work, &f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* ---- a backend's net ---- */

static void free_given(struct queue *q)
{
	struct packet *p;

	while ((p = STAILQ_FIRST(&q->given))) {
		STAILQ_REMOVE_HEAD(&q->given, link);
		free(p);
	}
}

static unsigned receive(struct ha_net *net, unsigned worker, struct ha_net_packet *packet,
			unsigned n)
{
	struct port *port = (struct port *)net;
	struct queue *q = &port->queue[worker];
	struct packet *p;
	uint64_t rings;
	unsigned i = 0;

	free_given(q);
	pthread_mutex_lock(&port->fabric->lock);
	while (i < n && (p = take_packet(q))) {
		packet[i++] = (struct ha_net_packet) { p->bytes, (uint32_t)p->len };
		STAILQ_INSERT_TAIL(&q->given, p, link);
	}
	if (STAILQ_EMPTY(&q->waiting) && read(q->fd, &rings, sizeof(rings)) < 0)
		CHECK(errno == EAGAIN);
	pthread_mutex_unlock(&port->fabric->lock);
	return i;
}

static void send(struct ha_net *net, unsigned worker, const struct ina_frame *frame)
{
	struct port *port = (struct port *)net;
	struct packet *p = packet_of(frame);

	pthread_mutex_lock(&port->fabric->lock);
	append_packet(&port->fabric->in, p);
	pthread_mutex_unlock(&port->fabric->lock);
}

static void flush(struct ha_net *net, unsigned worker)
{
	struct port *port = (struct port *)net;

	pthread_cond_signal(&port->fabric->work);
}

static int fd(struct ha_net *net, unsigned worker)
{
	return ((struct port *)net)->queue[worker].fd;
}

static int neighbour(struct ha_net *net, uint32_t addr, uint8_t mac[6], char *why, size_t size)
{
	struct fabric *f = ((struct port *)net)->fabric;
	unsigned us;

	pthread_mutex_lock(&f->lock);
	us = f->hidden_us;
	f->searches += us != 0;
	pthread_mutex_unlock(&f->lock);
	memset(mac, 0x22, 6);
	if (!us)
		return 0;
	usleep(us);
	snprintf(why, size, "nobody knows the way");
	return -EHOSTUNREACH;
}

static uint64_t lost(struct ha_net *net)
{
	return 0;
}

static void close_net(struct ha_net *net)
{
	struct port *port = (struct port *)net;
	struct packet *p;

	pthread_mutex_lock(&port->fabric->lock);
	for (unsigned i = 0; i < net->workers; i++) {
		free_given(&port->queue[i]);
		while ((p = take_packet(&port->queue[i])))
			free(p);
		close(port->queue[i].fd);
	}
	port->open = false;
	for (unsigned i = 0; i < PORTS; i++)
		if (port->fabric->port[i] == port)
			port->fabric->port[i] = NULL;
	pthread_mutex_unlock(&port->fabric->lock);
	free(port);
}

static const struct ha_net_ops net_ops = {
	.name = "fabric",
	.receive = receive,
	.send = send,
	.flush = flush,
	.fd = fd,
	.neighbour = neighbour,
	.lost = lost,
	.close = close_net,
};

struct ha_net *fabric_net(struct fabric *f, uint32_t addr, unsigned workers)
{
	struct port *port = calloc(1, sizeof(*port));
	unsigned i = 0;

	CHECK(port);
	port->net = (struct ha_net) { .ops = &net_ops,
				      .workers = workers,
				      .addr = addr,
				      .mac = { 2, 0, 0, 0, 0, (uint8_t)addr },
				      .node = -1 };
	port->fabric = f;
	port->open = true;
	for (unsigned w = 0; w < workers; w++) {
		init_queue(&port->queue[w], eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
		CHECK(port->queue[w].fd >= 0);
	}
	pthread_mutex_lock(&f->lock);
	while (i < PORTS && f->port[i])
		i++;
	CHECK(i < PORTS);
	f->port[i] = port;
	pthread_mutex_unlock(&f->lock);
	return &port->net;
}

/* ---- whoever gives groups ---- */

static struct fabric *fabric_of(struct ha_authority *a)
{
	return ((struct authority *)a)->fabric;
}

static void install_group(struct fabric *f, const struct ha_group_facts *g)
{
	struct ina_group_config c = { .id = g->id,
				      .ranks = g->ranks,
				      .workers = g->workers,
				      .extended = g->extended,
				      .base = g->base,
				      .len = g->len,
				      .epoch = g->epoch,
				      .lease_until = UINT64_MAX };
	const char *why = "";

	for (unsigned i = 0; i < g->ranks; i++)
		c.member[i].addr = g->member[i];
	if (ina_switch_install(&f->sw, &c, &why))
		fprintf(stderr, "%s\n", why);
	CHECK(f->sw.group[g->id].installed);
}

static int report_away(char *why, size_t size)
{
	snprintf(why, size, "the controller is away");
	return -ECONNREFUSED;
}

static void count_wait(struct fabric *f, struct incarnation *l, unsigned rank)
{
	if (!l->incarnation[rank] || l->left >> rank & 1)
		return;
	if (++l->waited[rank] > f->longest_wait)
		f->longest_wait = l->waited[rank];
}

/* All leases wait for a creation that takes its time. */
static void delay_creation(struct fabric *f)
{
	unsigned us;

	pthread_mutex_lock(&f->lock);
	us = f->create_us;
	for (unsigned i = 1; us && i < INA_GROUPS; i++)
		for (unsigned rank = 0; rank < INA_RANKS_MAX; rank++)
			count_wait(f, &f->incarnation[i], rank);
	pthread_mutex_unlock(&f->lock);
	if (us)
		usleep(us);
}

static int create_group(struct ha_authority *a, const struct ina_shm_create *spec,
			struct ha_group_facts *g, char *why, size_t size)
{
	struct fabric *f = fabric_of(a);
	unsigned tries = 0;

	delay_creation(f);
	pthread_mutex_lock(&f->lock);
	f->creating++;
	while (f->controller_hangs)
		pthread_cond_wait(&f->controller, &f->lock);
	f->creating--;
	do
		f->last = (uint8_t)(f->last % 16 + 1);
	while (f->incarnation[f->last].incarnations && ++tries < 16);
	if (f->controller_down || tries == 16) {
		bool down = f->controller_down;

		pthread_mutex_unlock(&f->lock);
		if (down)
			return report_away(why, size);
		snprintf(why, size, "all groups are in use");
		return -EAGAIN;
	}
	memset(g, 0, sizeof(*g));
	g->id = f->last;
	g->ranks = (uint8_t)spec->ranks;
	g->workers = (uint8_t)f->defaults.workers;
	g->extended = f->defaults.extended;
	g->len = f->defaults.slots;
	g->base = (uint16_t)((g->id - 1) * g->len);
	g->epoch = ++f->epoch[g->id];
	g->lease_ms = f->defaults.lease_ms;
	g->switch_addr = SWITCH_ADDR;
	g->key = 0x1234567890abcdefull ^ g->id ^ (uint64_t)g->epoch << 32;
	strcpy(g->switch_name, "fabric");
	memcpy(g->member, spec->member, spec->ranks * sizeof(g->member[0]));
	f->incarnation[g->id] = (struct incarnation) { .facts = *g, .incarnations = true };
	install_group(f, g);
	pthread_mutex_unlock(&f->lock);
	return 0;
}

static int join_locked(struct fabric *f, struct ha_group_facts *g, unsigned rank,
		       uint64_t incarnation, char *why, size_t size)
{
	struct incarnation *l = &f->incarnation[g->id];

	if (f->controller_down)
		return report_away(why, size);
	if (!l->incarnations || l->facts.key != g->key || l->facts.epoch != g->epoch) {
		snprintf(why, size, "there is no group %u of this key", g->id);
		return -EINVAL;
	}
	if (l->incarnation[rank] && l->incarnation[rank] != incarnation) {
		snprintf(why, size, "rank %u of group %u has joined before", rank, g->id);
		return -EEXIST;
	}
	l->incarnation[rank] = incarnation;
	*g = l->facts;
	return 0;
}

static int join_group(struct ha_authority *a, struct ha_group_facts *g, unsigned rank,
		      uint64_t incarnation, char *why, size_t size)
{
	struct fabric *f = fabric_of(a);
	int err;

	pthread_mutex_lock(&f->lock);
	err = join_locked(f, g, rank, incarnation, why, size);
	pthread_mutex_unlock(&f->lock);
	return err;
}

static int renew_lease(struct ha_authority *a, const struct ha_group_facts *g, unsigned rank,
		       uint64_t incarnation, char *why, size_t size)
{
	struct fabric *f = fabric_of(a);
	int err = 0;

	pthread_mutex_lock(&f->lock);
	f->incarnation[g->id].waited[rank] = 0;
	if (f->controller_down) {
		err = report_away(why, size);
	} else if (f->incarnation[g->id].reset) {
		snprintf(why, size, "the switch has lost its memory");
		err = -ECANCELED;
	}
	pthread_mutex_unlock(&f->lock);
	return err;
}

static int leave_group(struct ha_authority *a, const struct ha_group_facts *g, unsigned rank,
		       uint64_t incarnation)
{
	struct fabric *f = fabric_of(a);
	struct incarnation *l = &f->incarnation[g->id];
	int err = 0;

	pthread_mutex_lock(&f->lock);
	if (f->controller_down) {
		err = -ECONNREFUSED;
	} else if (l->incarnations && l->facts.epoch == g->epoch) {
		l->left |= 1u << rank;
		if (l->left == UINT32_MAX >> (32 - g->ranks)) {
			ina_switch_remove(&f->sw, g->id, g->epoch);
			l->incarnations = false;
		}
	}
	pthread_mutex_unlock(&f->lock);
	return err;
}

static void close_authority(struct ha_authority *a)
{
	free(a);
}

static const struct ha_authority_ops authority_ops = { create_group, join_group, renew_lease,
						       leave_group, close_authority };

struct ha_authority *fabric_authority(struct fabric *f)
{
	struct authority *a = calloc(1, sizeof(*a));

	CHECK(a);
	a->authority.ops = &authority_ops;
	a->fabric = f;
	return &a->authority;
}

/* ---- all of it ---- */

struct fabric *fabric_open(const struct ha_group_defaults *defaults)
{
	static const uint8_t mac[6] = { 0x22, 0x22, 0x22, 0x22, 0x22, 0x22 };
	struct fabric *f = calloc(1, sizeof(*f));

	CHECK(f);
	f->slot = calloc(SLOTS, sizeof(*f->slot));
	CHECK(f->slot);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_cond_init(&f->controller, NULL);
	f->defaults = *defaults;
	f->dice = 42;
	init_queue(&f->in, -1);
	ina_switch_init(&f->sw, SWITCH_ADDR, mac, f->slot, SLOTS);
	CHECK(!pthread_create(&f->thread, NULL, run_fabric, f));
	return f;
}

void fabric_close(struct fabric *f)
{
	struct packet *p;

	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_mutex_unlock(&f->lock);
	pthread_cond_signal(&f->work);
	pthread_join(f->thread, NULL);
	while ((p = take_packet(&f->in)))
		free(p);
	free(f->late);
	free(f->slot);
	free(f);
}

void fabric_lose_aborts(struct fabric *f, unsigned aborts)
{
	pthread_mutex_lock(&f->lock);
	f->aborts_lost = aborts;
	pthread_mutex_unlock(&f->lock);
}

void fabric_faults(struct fabric *f, struct fabric_faults faults)
{
	pthread_mutex_lock(&f->lock);
	f->faults = faults;
	pthread_mutex_unlock(&f->lock);
}

void fabric_switch_down(struct fabric *f, bool down)
{
	pthread_mutex_lock(&f->lock);
	f->down = down;
	pthread_mutex_unlock(&f->lock);
}

void fabric_switch_down_after(struct fabric *f, unsigned blocks)
{
	pthread_mutex_lock(&f->lock);
	f->until_down = blocks;
	pthread_mutex_unlock(&f->lock);
}

void fabric_switch_reset(struct fabric *f)
{
	pthread_mutex_lock(&f->lock);
	for (unsigned i = 1; i < INA_GROUPS; i++)
		if (f->incarnation[i].incarnations) {
			ina_switch_remove(&f->sw, (uint8_t)i, f->incarnation[i].facts.epoch);
			f->incarnation[i].incarnations = false;
			f->incarnation[i].reset = true;
		}
	pthread_mutex_unlock(&f->lock);
}

void fabric_controller_down(struct fabric *f, bool down)
{
	pthread_mutex_lock(&f->lock);
	f->controller_down = down;
	pthread_mutex_unlock(&f->lock);
}

void fabric_controller_hangs(struct fabric *f, bool hangs)
{
	pthread_mutex_lock(&f->lock);
	f->controller_hangs = hangs;
	pthread_mutex_unlock(&f->lock);
	pthread_cond_broadcast(&f->controller);
}

unsigned fabric_creating(struct fabric *f)
{
	unsigned creating;

	pthread_mutex_lock(&f->lock);
	creating = f->creating;
	pthread_mutex_unlock(&f->lock);
	return creating;
}

void fabric_switch_hidden(struct fabric *f, unsigned us)
{
	pthread_mutex_lock(&f->lock);
	f->hidden_us = us;
	pthread_mutex_unlock(&f->lock);
}

unsigned fabric_searches(struct fabric *f)
{
	unsigned searches;

	pthread_mutex_lock(&f->lock);
	searches = f->searches;
	pthread_mutex_unlock(&f->lock);
	return searches;
}

void fabric_slow_creates(struct fabric *f, unsigned us)
{
	pthread_mutex_lock(&f->lock);
	f->create_us = us;
	pthread_mutex_unlock(&f->lock);
}

unsigned fabric_longest_wait(struct fabric *f)
{
	unsigned longest;

	pthread_mutex_lock(&f->lock);
	longest = f->longest_wait;
	pthread_mutex_unlock(&f->lock);
	return longest;
}

uint64_t fabric_hurt(struct fabric *f)
{
	uint64_t hurt;

	pthread_mutex_lock(&f->lock);
	hurt = f->hurt;
	pthread_mutex_unlock(&f->lock);
	return hurt;
}

unsigned fabric_groups(struct fabric *f)
{
	unsigned n = 0;

	pthread_mutex_lock(&f->lock);
	for (unsigned i = 1; i < INA_GROUPS; i++)
		n += f->incarnation[i].incarnations;
	pthread_mutex_unlock(&f->lock);
	return n;
}
