/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mlx5.c - the host library over the mlx5 table, with a libmlx5 and verbs of our own behind
 * it: which commands go out in which order, what they carry from one process to the other, and that
 * everything made is destroyed. No NIC: nothing is executed.
 */
#include "gpu/host/backup.h"
#include "gpu/host/host.h"
#include "gpu/host/mlx5.h"
#include "gpu/host/stream.h"
#include "tests/gpu/mlx5_fake.h"
#include "tests/ina/switch/named.h"
#include "tests/rdma/topo/tree.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* ---- a process ---- */

static int alloc(void *unused, size_t bytes, void **memory)
{
	*memory = fake_alloc(bytes);
	return 0;
}

static void free_memory(void *unused, void *memory, size_t bytes)
{
	fake_free(memory);
}

/* As CUDA does: the register has another address at the GPU, where the host's agents find nothing;
 * what is mapped is given back. */
#define APART (UINT64_C(1) << 46)
static long mapped, ever;

static int map_doorbell(void *unused, void *page, void **fake_device)
{
	__atomic_fetch_add(&mapped, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&ever, 1, __ATOMIC_RELAXED);
	*fake_device = (void *)((uintptr_t)page + APART);
	return 0;
}

static void unmap_doorbell(void *unused, void *page)
{
	__atomic_fetch_sub(&mapped, 1, __ATOMIC_RELAXED);
}

/* The heap is the GPU's; what else is registered is not. */
static void *heap[PES];
static long exported;

static int dmabuf(void *unused, void *address, size_t bytes, int *fd, uint64_t *offset)
{
	if (address != heap[fake_self])
		return -EOPNOTSUPP;
	*fd = dup(0);
	*offset = 64;
	__atomic_fetch_add(&exported, 1, __ATOMIC_RELAXED);
	return *fd < 0 ? -EIO : 0;
}

static bool gpu_heap[PES];

static bool is_device(void *unused, const void *address)
{
	return gpu_heap[fake_self] && address == heap[fake_self];
}

struct process {
	struct ha_gpu_host *host;
	struct ha_gpu_bootstrap b;
};

static struct process proc[PES];
static void (*body)(struct ha_gpu_host_config *c,
		    struct process *p); /* between the bootstrap and its end */
static const struct ha_gpu_mlx5_memory memory = { .alloc = alloc,
						  .free = free_memory,
						  .map_doorbell = map_doorbell,
						  .unmap_doorbell = unmap_doorbell,
						  .dmabuf = dmabuf,
						  .is_device = is_device };

/* What entries carry names the peer's target, with its key, over the way that the kernel has
 * found. */
static void check_av(struct ha_gpu_host *h)
{
	struct ha_gpu_conn *c = ha_gpu_world_any(ha_gpu_host_world(h), 0, (uint32_t)!fake_self);
	struct mlx5_wqe_av av;
	bool found = false;

	for (int path = 0; path < 2; path++) {
		memcpy(&av, c->path[path].av, sizeof(av));
		CHECK(c->path[path].wide && av.rmac[5] == 12);
		found = false;
		for (unsigned i = 0; i < fake_nobjects; i++)
			found |= fake_object[i].opcode[0] == 0x710 &&
				 fake_object[i].pe != fake_self &&
				 !memcmp(fake_object[i].made + 48, &av.key, 8) &&
				 ha_gpu_be32(av.dqp_dct) == (fake_object[i].number | 1u << 31);
		CHECK(found);
	}
}

/* GPU threads ring where the GPU has the register, the host's threads where they have it; agents
 * rang the GPU's. */
static void check_doorbells(struct ha_gpu_host *h, uint64_t apart)
{
	struct ha_gpu_conn *c = ha_gpu_world_any(ha_gpu_host_world(h), 0, (uint32_t)!fake_self);

	CHECK_INT(ha_gpu_signal(c, 0, 1, 0, 0), HA_GPU_DONE);
	for (int path = 0; path < 2; path++) {
		CHECK_INT((uint64_t)(uintptr_t)c->path[path].bf -
				  (uint64_t)(uintptr_t)c->path[path].host_bf,
			  apart);
		/* what we posted, and the agent's probe */
		while (!ha_gpu_load(c->path[path].host_bf))
			sched_yield();
	}
	CHECK(c->now.bf == c->path[0].bf && c->now.host_bf == c->path[0].host_bf);
}

static void connect_all(struct ha_gpu_host_config *c, struct process *p)
{
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK(!ha_gpu_host_connect(p->host, 1, 1));
	check_doorbells(p->host, APART);
	/* no NIC has done what was posted */
	CHECK_INT(ha_gpu_host_finalize(p->host, 100), -ETIMEDOUT);
	/* A ring of completions is refused, and all is given back. */
	c->settings.cq_collapsed = 0;
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK_INT(ha_gpu_host_connect(p->host, 1, 1), -EOPNOTSUPP);
	CHECK(!ha_gpu_host_finalize(p->host, 20000));
}

static void connect_dynamic(struct ha_gpu_host_config *c, struct process *p)
{
	c->settings.traffic_class = 0x6a;
	c->settings.service_level = 5;
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK(!ha_gpu_host_connect_dc(p->host, 1, 1));
	check_av(p->host);
	CHECK(!ha_gpu_host_connect(p->host, 1, 1));
	CHECK(!ha_gpu_host_finalize(p->host, 20000));
}

static void *run_process(void *arg)
{
	struct ha_gpu_host_config c = { .ops = &ha_gpu_mlx5_ops, .heap_bytes = 1 << 16 };
	struct ha_gpu_mlx5 m = {
		.verbs = &fake_verbs, .dv = fake_dv, .gid_index = -1, .memory = memory
	};
	struct process *p = arg;

	fake_self = (int)(p - proc);
	CHECK(!ha_gpu_bootstrap_tcp(&p->b, fake_root, fake_self, PES, 5, 20000));
	ha_gpu_settings_defaults(&c.settings);
	c.hw = &m;
	c.bootstrap = &p->b;
	c.heap = heap[fake_self] = fake_alloc(c.heap_bytes);
	body(&c, p);
	ha_gpu_bootstrap_close(&p->b);
	fake_verbs.device_list_free(&fake_verbs, m.list);
	fake_free(c.heap);
	return NULL;
}

static struct fake_obj *by_number(uint32_t number)
{
	for (unsigned i = 0; i < fake_nobjects; i++)
		if (fake_object[i].number == number)
			return &fake_object[i];
	return NULL;
}

/* Reset, initialised, given a peer that in turn was given it, ready to send; then stopped,
 * after whatever the agents did. */
static void check_queue_pair(const struct fake_obj *o)
{
	static const unsigned way[] = { 0x500, 0x50a, 0x502, 0x503, 0x504 };
	const struct fake_obj *peer = by_number(fake_field24(o->rtr, 24 + 0xa8 / 8));

	for (unsigned i = 0; i < 5; i++)
		CHECK_INT(o->opcode[i], way[i]);
	CHECK(o->n > 5 && o->opcode[5] == 0x507);
	CHECK(peer && peer->opcode[0] == 0x500 && peer->pe != o->pe);
	CHECK_INT(fake_field24(peer->rtr, 24 + 0xa8 / 8), o->number);
	CHECK_INT(o->rtr[24 + 24 + 0x130 / 8 + 5], 12); /* the next hop's MAC */
	CHECK_INT(o->rtr[24 + 24 + 0x80 / 8 + 15] / 16, peer->pe);
}

static void run_both(void (*does)(struct ha_gpu_host_config *c, struct process *p))
{
	pthread_t t[PES];

	body = does;
	CHECK(!ha_gpu_stream_free_local(fake_root));
	for (int i = 0; i < PES; i++)
		CHECK(!pthread_create(&t[i], NULL, run_process, &proc[i]));
	for (int i = 0; i < PES; i++)
		pthread_join(t[i], NULL);
}

static void dynamic_connections(void)
{
	unsigned initiators = 0, targets = 0, connected = 0;

	run_both(connect_dynamic);
	for (unsigned i = 0; i < fake_nobjects; i++) {
		const struct fake_obj *o = &fake_object[i];

		targets += o->opcode[0] == 0x710;
		/* what a target answers went in class 0, whatever was set */
		if (o->opcode[0] == 0x710) {
			CHECK_INT(o->made[44], 0x6a);
			CHECK_INT(o->made[70], 5);
			CHECK_INT(o->made[71], 0x6a >> 2);
		}
		if (o->opcode[0] == 0x500 && o->made[25] == 5) {
			initiators++;
			CHECK_INT(o->opcode[2], 0x502);
			CHECK_INT(o->opcode[3], 0x503);
			CHECK_INT(o->opcode[4], 0x504);
			CHECK_INT(fake_field24(o->rtr, 24 + 0xa8 / 8), 0); /* it has no peer */
		} else if (o->opcode[0] == 0x500) {
			connected++;
			check_queue_pair(o);
		}
	}
	CHECK_INT(initiators, PES * NICS * 2);
	CHECK_INT(targets, initiators);
	CHECK_INT(connected, initiators);
	CHECK_INT(fake_live, 0);
	CHECK_INT(mapped, 0);
}

static void connect_proxied(struct ha_gpu_host_config *c, struct process *p)
{
	c->settings.proxied = 1;
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK(!ha_gpu_host_connect(p->host, 1, 1));
	check_doorbells(p->host, 0);
	CHECK_INT(ha_gpu_host_finalize(p->host, 100), -ETIMEDOUT);
}

static void connect_at_8(struct ha_gpu_host_config *c, struct process *p)
{
	c->settings.service_level = 8;
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK_INT(ha_gpu_host_connect(p->host, 1, 1), -EINVAL);
	CHECK_INT(ha_gpu_host_connect_dc(p->host, 1, 1), -EINVAL);
	CHECK(!ha_gpu_host_finalize(p->host, 100));
}

/* RoCE has priorities 0 to 7: of what was set beyond, three bits were taken silently. */
static void priority_of_roce(void)
{
	run_both(connect_at_8);
	CHECK_INT(fake_live, 0);
	CHECK_INT(mapped, 0);
}

/* HA_GPU_PROXY=1 is what to do where no doorbell can be had at the GPU, and it asked for one all
 * the same. */
static void proxy_maps_no_doorbell(void)
{
	run_both(connect_proxied);
	CHECK_INT(ever, 0);
	CHECK_INT(mapped, 0);
	CHECK_INT(fake_live, 0);
}

static void two_processes(void)
{
	unsigned qps = 0, cqs = 0;

	run_both(connect_all);
	for (unsigned i = 0; i < fake_nobjects; i++) {
		cqs += fake_object[i].opcode[0] == 0x400;
		qps += fake_object[i].opcode[0] == 0x500;
		if (fake_object[i].opcode[0] == 0x500)
			check_queue_pair(&fake_object[i]);
	}
	/* Two devices, a primary and a backup on each, one peer. */
	CHECK_INT(qps, PES * NICS * 2);
	CHECK_INT(cqs, qps);
	CHECK_INT(fake_live, 0);
	CHECK_INT(
		ever,
		qps); /* each has its doorbell at the GPU, and all are given back: they were not */
	CHECK_INT(mapped, 0);
	CHECK_INT(exported, PES * NICS * 2);
	CHECK_INT(fake_registered_dmabuf, exported);
}

static void connect_apart(struct ha_gpu_host_config *c, struct process *p)
{
	const struct ha_gpu_path *path;
	const struct ha_gpu_wqe *e;
	struct ha_gpu_conn *conn;

	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK(!ha_gpu_host_connect(p->host, 1, 1));
	conn = ha_gpu_world_any(ha_gpu_host_world(p->host), 0, (uint32_t)!fake_self);
	CHECK_INT(conn->apart, gpu_heap[!fake_self]);
	CHECK_INT(ha_gpu_signal(conn, 0, 1, 0, 0), HA_GPU_DONE);
	path = &conn->path[0];
	e = (const struct ha_gpu_wqe *)(const void *)path->wqe;
	if (conn->apart) {
		CHECK_INT(ha_gpu_wqe_opcode(e), HA_GPU_OP_READ);
		CHECK_INT(ha_gpu_wqe_raddr(e), conn->remote);
		CHECK_INT((uint32_t)e->w[3], path->rkey[0]);
		e++;
	}
	CHECK_INT(ha_gpu_wqe_opcode(e), HA_GPU_OP_WRITE);
	CHECK_INT(!!(ha_gpu_wqe_flags(e) & HA_GPU_WQE_FENCE), conn->apart);
	CHECK_INT(ha_gpu_host_finalize(p->host, 100), -ETIMEDOUT);
}

/* Signals lie in the host's memory, and data in one rank's GPU: who writes there knows it. */
static void gpu_memory_is_apart(void)
{
	gpu_heap[1] = true;
	run_both(connect_apart);
	CHECK_INT(fake_live, 0);
}

/* All registers that the host's threads ring at, each of one queue pair alone. */
static void check_registers(struct ha_gpu_host *h)
{
	const struct ha_gpu_world *w = ha_gpu_host_world(h);
	const uint64_t *seen[16];
	unsigned n = 0;

	CHECK_INT(w->nrows, 4);
	for (uint32_t row = 0; row < w->nrows; row++)
		for (int path = 0; path < 2; path++) {
			struct ha_gpu_conn *c = ha_gpu_world_any(w, row, (uint32_t)!fake_self);

			seen[n++] = c->path[path].host_bf;
			for (unsigned i = 0; i + 1 < n; i++)
				CHECK(seen[i] != seen[n - 1]);
		}
	CHECK_INT(n, 8);
}

static void connect_two(struct ha_gpu_host_config *c, struct process *p)
{
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK(!ha_gpu_host_connect(p->host, 2, 2));
	check_registers(p->host);
	CHECK(!ha_gpu_host_finalize(p->host, 20000));
}

/* Lanes of a warp that ring different queue pairs store at once: to one address, of all queue pairs
 * of a NIC, only one of the stores was sure to be carried out. */
static void registers_of_their_own(void)
{
	run_both(connect_two);
	CHECK_INT(fake_live, 0);
	CHECK_INT(mapped, 0);
}

/* rdma-core before 45, or a kernel that gives none. */
static void registers_without_dedicated_ones(void)
{
	fake_no_dedicated = true;
	registers_of_their_own();
}

static void connect_without_registers(struct ha_gpu_host_config *c, struct process *p)
{
	CHECK(!ha_gpu_host_open(c, &p->host));
	CHECK_INT(ha_gpu_host_connect(p->host, 1, 1), -EOPNOTSUPP);
	CHECK(!ha_gpu_host_finalize(p->host, 20000));
	connect_proxied(c, p);
}

/* Better none than one for all; the host, whose stores are one by one, may ring there. */
static void no_registers(void)
{
	fake_no_dedicated = fake_no_blueflame = true;
	run_both(connect_without_registers);
	CHECK_INT(ever, 0);
	CHECK_INT(fake_live, 0);
}

static void qp_is_not_fenced(const struct ha_gpu_hw_ops *ops, struct ha_gpu_hw_qp *qp,
			     uint32_t *dbrec)
{
	struct ha_gpu_rc_link link = { .timeout = 14 };
	int r;

	fake_refused_errno = EIO;
	fake_refused_opcode = 0x507; /* 2ERR_QP */
	r = ops->qp_modify(qp, HA_GPU_QP_ERR, &link);
	CHECK(r < 0 && r != -EIO);
	fake_device_gone = true;
	CHECK_INT(ops->qp_modify(qp, HA_GPU_QP_ERR, &link), -EIO);
	fake_device_gone = false;

	dbrec[HA_GPU_DBR_SEND] = ha_gpu_be32(3); /* three were rung, and no completion comes */
	fake_refused_opcode = 0x50a;             /* 2RST_QP */
	do
		r = ops->qp_drained(qp);
	while (r == -EAGAIN);
	CHECK(r < 0 && r != -EIO);
}

static void dct_is_not_fenced(const struct ha_gpu_hw_ops *ops, struct ha_gpu_hw_dct *dct)
{
	int r;

	fake_refused_opcode = 0x711;
	r = ops->dct_destroy(dct);
	CHECK(r < 0 && r != -EIO);
	fake_refused_opcode = 0;
	CHECK_INT(ops->dct_destroy(dct), 0);
}

/* Only a device that is gone says -EIO, which is as good as a fence. A firmware that refuses may
 * have the kernel say EIO, too, and the queue pair or target goes on taking what comes: that was
 * taken for a fence. */
static void refused_is_no_fence(void)
{
	const struct ha_gpu_hw_ops *ops = &ha_gpu_mlx5_ops;
	struct ha_gpu_mlx5 m = { .verbs = &fake_verbs,
				 .dv = fake_dv,
				 .gid_index = -1,
				 .memory = { .alloc = alloc, .free = free_memory } };
	struct ha_gpu_port_info list[HA_GPU_PORTS_MAX];
	struct ha_gpu_rc_link link = { .timeout = 14 };
	struct ha_gpu_hw_dct dct = { 0 };
	struct ha_gpu_hw_qp qp = { 0 };
	void *port, *pd, *cq, *memory, *buf;
	struct ha_gpu_cq_attr c = { 0 };
	struct ha_gpu_qp_attr a = { .nwqes = 64 };

	CHECK_INT(ops->ports(&m, list, HA_GPU_PORTS_MAX), NICS);
	CHECK(!ops->open(&m, 0, &port) && !ops->pd_alloc(port, &pd) &&
	      !ops->mem_alloc(&m, 8192, &memory));
	CHECK(!ops->buf_map(port, memory, 8192, &buf));
	c.buf = c.dbr_buf = a.buf = a.dbr_buf = buf;
	c.cqe = memory;
	c.dbrec = (uint32_t *)memory + 32;
	a.dbrec = (uint32_t *)memory + 64;
	CHECK(!ops->cq_create(port, &c, &cq));
	a.cq = cq;
	CHECK(!ops->qp_create(pd, &a, &qp) && !ops->dct_create(pd, cq, &link, 5, &dct));
	qp_is_not_fenced(ops, &qp, a.dbrec);
	dct_is_not_fenced(ops, &dct);
	CHECK(!ops->qp_destroy(&qp) && !ops->cq_destroy(cq) && !ops->buf_unmap(buf));
	ops->mem_free(&m, memory, 8192);
	CHECK(!ops->pd_free(pd) && !ops->close(port));
	fake_verbs.device_list_free(&fake_verbs, m.list);
	CHECK_INT(fake_live, 0);
}

/* ---- ports ---- */

static struct ha_gpu_mlx5 alone;

static void *one_port(void)
{
	struct ha_gpu_port_info list[HA_GPU_PORTS_MAX];
	void *port;

	alone = (struct ha_gpu_mlx5) { .verbs = &fake_verbs,
				       .dv = fake_dv,
				       .gid_index = -1,
				       .memory = { .alloc = alloc, .free = free_memory } };
	CHECK_INT(ha_gpu_mlx5_ops.ports(&alone, list, HA_GPU_PORTS_MAX), NICS);
	CHECK(!ha_gpu_mlx5_ops.open(&alone, 0, &port));
	return port;
}

static void end_port(void *port)
{
	CHECK(!ha_gpu_mlx5_ops.close(port));
	fake_verbs.device_list_free(&fake_verbs, alone.list);
	CHECK_INT(fake_live, 0);
	CHECK_INT(fake_acknowledged, fake_taken);
}

/* As an agent asks, at every step. */
static void wait_for_port(void *port, enum ha_gpu_port state)
{
	while (ha_gpu_mlx5_ops.port(port) != state)
		sched_yield();
}

#define PCI "/sys/devices/pci0000:00/0000:00:01.0/0000:08:00."

/* A card of two ports: physical functions 0 and 1, virtual ones 2 and 3 of the first, 4 of the
 * second; a sub-function of the second. */
static void make_card(struct tree *t)
{
	static const char *const place[] = { PCI "0", PCI "2", PCI "3",
					     PCI "1", PCI "4", PCI "1/mlx5_core.sf.2" };
	char name[16];

	tree_make(t);
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "mlx5_%d", i);
		tree_nic(t, name, place[i], 0);
	}
	tree_link(t, PCI "2/physfn", PCI "0");
	tree_link(t, PCI "3/physfn", PCI "0");
	tree_link(t, PCI "4/physfn", PCI "1");
	fake_ndevices = 6;
	fake_one_card = 0xabcd;
}

/* Virtual functions have their card's system image GUID, as its other ports have: each was a port
 * of its own, and the first virtual function the backup of its physical one. */
static void virtual_functions(void)
{
	static const unsigned port[] = { 1, 1, 1, 2, 2, 2 };
	static const int backup[] = { 3, 4, 5, 0, 1, 2 };
	struct ha_gpu_port_info list[HA_GPU_PORTS_MAX];
	struct ha_gpu_mlx5 m = { .verbs = &fake_verbs, .dv = fake_dv };
	struct ha_gpu_backup_map map;
	struct tree t;

	make_card(&t);
	m.sysfs_root = t.root;
	CHECK_INT(ha_gpu_mlx5_ops.ports(&m, list, HA_GPU_PORTS_MAX), 6);
	CHECK(!ha_gpu_backup_map(list, 6, NULL, NULL, &map));
	for (int i = 0; i < 6; i++) {
		CHECK_INT(list[i].port, port[i]);
		CHECK_INT(map.of[i], backup[i]);
	}
	CHECK_INT(map.warnings, 0);
	/* the first port alone, with its virtual functions */
	fake_verbs.device_list_free(&fake_verbs, m.list);
	m.list = NULL;
	fake_ndevices = 3;
	CHECK_INT(ha_gpu_mlx5_ops.ports(&m, list, HA_GPU_PORTS_MAX), 3);
	CHECK(!ha_gpu_backup_map(list, 3, NULL, NULL, &map));
	for (int i = 0; i < 3; i++)
		CHECK_INT(map.of[i], HA_GPU_NO_BACKUP);
	CHECK_INT(map.warnings, 3);
	fake_verbs.device_list_free(&fake_verbs, m.list);
	tree_remove(&t);
	CHECK_INT(fake_live, 0);
}

/* A query is a command to the firmware, and every step of every connection sent one. */
static void port_is_asked_seldom(void)
{
	void *port = one_port();
	uint64_t begin = ha_gpu_now(), seconds;

	fake_queries = 0;
	for (unsigned i = 0; i < 100000; i++)
		CHECK_INT(ha_gpu_mlx5_ops.port(port), HA_GPU_PORT_UP);
	seconds = (ha_gpu_now() - begin) / 1000000000;
	CHECK(fake_queries <= (long)seconds + 2);
	end_port(port);
}

/* What events say counts at once; of another port they say nothing. And what no event has said is
 * found out all the same. */
static void events_count_at_once(void)
{
	void *port = one_port();
	long before;

	fake_report_event(IBV_EVENT_PORT_ERR, 2);
	fake_report_event(IBV_EVENT_LID_CHANGE, 1);
	while (fake_taken < fake_nevents)
		CHECK_INT(ha_gpu_mlx5_ops.port(port), HA_GPU_PORT_UP);
	fake_port_state = IBV_PORT_DOWN;
	fake_report_event(IBV_EVENT_PORT_ERR, 1);
	wait_for_port(port, HA_GPU_PORT_DOWN);
	before = fake_queries;
	fake_port_state = IBV_PORT_ACTIVE;
	fake_report_event(IBV_EVENT_PORT_ACTIVE, 1);
	wait_for_port(port, HA_GPU_PORT_UP);
	CHECK(fake_queries > before);
	fake_port_state = IBV_PORT_DOWN; /* without an event */
	wait_for_port(port, HA_GPU_PORT_DOWN);
	fake_port_state = IBV_PORT_ACTIVE;
	wait_for_port(port, HA_GPU_PORT_UP);
	fake_report_event(IBV_EVENT_DEVICE_FATAL, 0);
	wait_for_port(port, HA_GPU_PORT_GONE);
	before = fake_queries;
	for (uint64_t end = ha_gpu_now() + 1100000000; ha_gpu_now() < end;)
		CHECK_INT(ha_gpu_mlx5_ops.port(port), HA_GPU_PORT_GONE); /* for good */
	CHECK_INT(fake_queries, before);
	end_port(port);
}

/* Events that end are a device that goes, which the query says. One that fails otherwise says
 * nothing: it was taken for a device that is gone, and that for a fence. */
static void query_that_fails(void)
{
	void *port = one_port();
	long before = fake_queries;

	fake_query_fails = -ENOMEM;
	fake_report_event(IBV_EVENT_PORT_ACTIVE, 1); /* asks */
	while (fake_queries == before)
		CHECK_INT(ha_gpu_mlx5_ops.port(port), HA_GPU_PORT_UP);
	CHECK_INT(ha_gpu_mlx5_ops.port(port), HA_GPU_PORT_UP);
	fake_no_events = -EIO;
	fake_device_gone = true;
	wait_for_port(port, HA_GPU_PORT_GONE);
	end_port(port);
}

/* A port may come back with another LID, or GID at the same index. */
static void address_is_read_anew(void)
{
	struct ha_gpu_rc_handle first = { 0 }, second = { 0 };
	void *port = one_port();

	fake_lid = 3;
	CHECK(!ha_gpu_mlx5_ops.address(port, &first));
	fake_lid = 0xbeef;
	fake_gid_byte = 7;
	CHECK(!ha_gpu_mlx5_ops.address(port, &second));
	CHECK_INT(first.lid, 3);
	CHECK_INT(second.lid, 0xbeef);
	CHECK(first.spn == second.spn && first.iid != second.iid && second.ethernet);
	CHECK_INT(second.mtu, IBV_MTU_4096);
	fake_device_gone = true;
	CHECK_INT(ha_gpu_mlx5_ops.address(port, &second), -EIO);
	end_port(port);
}

static int any_dmabuf(void *unused, void *address, size_t bytes, int *fd, uint64_t *offset)
{
	*fd = dup(0);
	*offset = 64;
	return *fd < 0 ? -EIO : 0;
}

/* A kernel without dma-buf for this NIC says one of two words: the memory is registered like any
 * other (nvidia-peermem may take it). One of them ended the set-up. */
static void dmabuf_not_taken(void)
{
	static const int words[] = { -EOPNOTSUPP, -EPROTONOSUPPORT };
	void *port = one_port(), *pd;
	struct ha_gpu_mr mr;
	char byte[64];

	alone.memory.dmabuf = any_dmabuf;
	CHECK(!ha_gpu_mlx5_ops.pd_alloc(port, &pd));
	for (unsigned i = 0; i < 2; i++) {
		fake_dmabuf_error = words[i];
		CHECK_INT(ha_gpu_mlx5_ops.mr_reg(pd, byte, sizeof(byte), true, &mr), 0);
		CHECK(!ha_gpu_mlx5_ops.mr_dereg(&mr));
	}
	fake_dmabuf_error = -ENOMEM;
	CHECK_INT(ha_gpu_mlx5_ops.mr_reg(pd, byte, sizeof(byte), true, &mr), -ENOMEM);
	CHECK(!ha_gpu_mlx5_ops.pd_free(pd));
	end_port(port);
}

/* A libmlx5 that lacks calls: what was closed already is not closed again by whoever cleans up. */
static void old_library_is_refused(void)
{
	struct ha_gpu_mlx5 m;

	CHECK_INT(ha_gpu_mlx5_init(&m, &fake_verbs, NULL), -ENOENT);
	CHECK(!m.library);
	ha_gpu_mlx5_fini(&m);
}

static const struct named_test tests[] = {
	{ "two_processes", two_processes },
	{ "proxied", proxy_maps_no_doorbell },
	{ "registers_of_their_own", registers_of_their_own },
	{ "registers_without_dedicated_ones", registers_without_dedicated_ones },
	{ "no_registers", no_registers },
	{ "virtual_functions", virtual_functions },
	{ "gpu_memory_is_apart", gpu_memory_is_apart },
	{ "priority_of_roce", priority_of_roce },
	{ "refused_is_no_fence", refused_is_no_fence },
	{ "port_is_asked_seldom", port_is_asked_seldom },
	{ "events_count_at_once", events_count_at_once },
	{ "query_that_fails", query_that_fails },
	{ "address_is_read_anew", address_is_read_anew },
	{ "dmabuf_not_taken", dmabuf_not_taken },
	{ "old", old_library_is_refused },
	{ "dynamic", dynamic_connections },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
