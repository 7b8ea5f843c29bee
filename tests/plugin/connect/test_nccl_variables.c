/* SPDX-License-Identifier: BSD-3-Clause */
/* Variables of NCCL's own transport that act on how a connection is made and on what devices
 * report. */
#include "base/check.h"
#include "plugin/balance/policy.h"
#include "plugin/bundle.h"
#include "plugin/device/device.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

#include <errno.h>

static struct world w;
static struct ha_listen *listen;
static struct ha_send *send;
static struct ha_recv *recv;

static void prepare_world(void)
{
	lines_catch();
	world_prepare(&w);
}

/* From device `theirs` of b to device `ours` of a. */
static void open_between(int ours, int theirs)
{
	char handle[HA_HANDLE_MAX];

	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	send = NULL;
	recv = NULL;
	CHECK_INT(ha_listen(w.a, ours, NULL, handle, &listen), 0);
	for (int i = 0; i < 4000 && !(send && recv); i++) {
		if (!send)
			CHECK_INT(ha_connect(w.b, theirs, NULL, handle, &send), 0);
		if (!recv)
			CHECK_INT(ha_accept(listen, &recv), 0);
	}
	CHECK(send && recv);
}

static int send_error(void)
{
	struct ha_request *req;

	return ha_isend(send, NULL, 0, 0, NULL, &req);
}

static void test_fifo_tc(void)
{
	prepare_world();
	w.config.ib_tc = 32;
	w.config.ib_fifo_tc = 96;
	open_between(0, 0);
	CHECK_INT(w.dummy[0].last_rtr.ah_attr.grh.traffic_class, 96); /* the receiver's */
	CHECK_INT(w.dummy[1].last_rtr.ah_attr.grh.traffic_class, 32);
	world_close(&w);
}

static void test_ece_enable(void)
{
	for (int wanted = 0; wanted < 2; wanted++) {
		prepare_world();
		w.dummy[0].ece = 3;
		w.dummy[1].ece = 5;
		w.config.ib_ece_enable = wanted;
		open_between(0, 0);
		CHECK_INT(w.dummy[0].last_ece, wanted ? 5 : 0);
		CHECK_INT(w.dummy[1].last_ece, wanted ? 3 : 0);
		world_close(&w);
	}
}

static void test_use_inline(void)
{
	for (int wanted = 0; wanted < 2; wanted++) {
		prepare_world();
		w.config.ib_use_inline = wanted;
		open_between(0, 0);
		CHECK(!recv->b.rail[0].max_inline == !wanted);
		CHECK(!send->b.rail[0].max_inline == !wanted);
		world_close(&w);
	}
}

/* What a device reports is logged in any case, and ends a connection only where that is wanted. */
/* Three queue pairs: each message over one of them, in turns, or cut over all. */
static void test_split_data_on_qps(void)
{
	for (int wanted = 0; wanted < 2; wanted++) {
		struct ha_cut cut;

		prepare_world();
		w.config.ib_qps_per_connection = 3;
		w.config.ib_split_data_on_qps = wanted;
		open_between(0, 0);
		CHECK_INT(send->b.balance.ndata, 3);
		for (uint64_t message = 0; message < 3; message++) {
			ha_policy_cut(&send->b, message, 1 << 20, &cut);
			CHECK_INT(cut.mask, wanted ? 7 : 1 << message);
		}
		world_close(&w);
	}
}

static void test_return_async_events(void)
{
	for (int wanted = 0; wanted < 2; wanted++) {
		prepare_world();
		w.config.ib_return_async_events = wanted;
		open_between(0, 0);
		dummy_event(&w.dummy[1], IBV_EVENT_QP_ACCESS_ERR, send->b.rail[0].qp);
		world_run(&w, 2000);
		CHECK(lines_contain("access error"));
		CHECK_INT(send_error(), wanted ? -EIO : 0);
		world_close(&w);
		prepare_world();
		w.config.ib_return_async_events = wanted;
		open_between(0, 0);
		dummy_event(&w.dummy[1], IBV_EVENT_DEVICE_FATAL, NULL);
		world_run(&w, 10);
		CHECK(lines_contain("device"));
		CHECK_INT(send_error(), wanted ? -EIO : 0);
		world_close(&w);
	}
}

/* Device 0 of the hosts lies in 10.0.0.0/24, device 1 in 10.0.1.0/24. */
static void test_subnet_at_the_connector(void)
{
	static const struct {
		bool wanted;
		int bits, ours, theirs, used;
	} cases[] = {
		{ false, 24, 0, 1, 1 }, { true, 24, 0, 1, 0 }, { true, 24, 1, 0, 1 },
		{ true, 24, 1, 1, 1 },  { true, 23, 0, 1, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		prepare_world();
		w.config.ib_subnet_aware_routing = cases[i].wanted;
		w.config.ib_subnet_prefix_len = cases[i].bits;
		open_between(cases[i].ours, cases[i].theirs);
		CHECK_INT(send->b.rail[0].dev->index, cases[i].used);
		CHECK_INT(recv->b.rail[0].dev->index, cases[i].ours);
		CHECK_INT(lines_warnings(), 0);
		world_close(&w);
	}
}

/* No device of the connector shares a subnet with the listener's; then another one of the
 * listener's does with the connector's. */
static void test_subnet_at_the_listener(void)
{
	for (int wanted = 0; wanted < 2; wanted++) {
		prepare_world();
		w.dummy[1].devices[0].ports[0] = fake_roce_port("10.0.0.7");
		w.dummy[1].devices[1].ports[0] = fake_roce_port("10.0.0.8");
		w.config.ib_subnet_aware_routing = wanted;
		open_between(1, 0);
		CHECK_INT(send->b.rail[0].dev->index, 0);
		CHECK_INT(recv->b.rail[0].dev->index, wanted ? 0 : 1);
		world_close(&w);
	}
}

/* InfiniBand has no such subnets, and a device that does not exist stays an error. */
static void test_subnet_is_left_alone(void)
{
	char handle[HA_HANDLE_MAX];
	struct ha_send *none = NULL;

	prepare_world();
	for (int host = 0; host < 2; host++)
		for (int i = 0; i < 2; i++)
			w.dummy[host].devices[i].ports[0] =
				fake_ib_port((uint16_t)(11 + 2 * host + i));
	w.config.ib_subnet_aware_routing = true;
	open_between(0, 1);
	CHECK_INT(send->b.rail[0].dev->index, 1);
	CHECK_INT(ha_listen(w.a, 0, NULL, handle, &(struct ha_listen *) { NULL }), 0);
	CHECK_INT(ha_connect(w.b, 9, NULL, handle, &none), -EINVAL);
	world_close(&w);
}

/* A dma-buf goes through the function that has the data, NCCL is given that one and flushes; what
 * is no dma-buf does not. */
static void test_data_direct(void)
{
	static const char function[] = "/sys/devices/pci0001:00/0001:01:00.0";
	static uint8_t memory[4096];
	struct ha_dev_props props;
	struct ha_mr *mr;

	for (int wanted = 0; wanted < 3; wanted++) {
		prepare_world();
		w.dummy[0].devices[0].data_direct = function;
		w.config.ib_data_direct = wanted;
		open_between(0, 0);
		CHECK_INT(ha_ctx_device(w.a, 0, &props), 0);
		CHECK(!wanted == !(props.pci_path && !strcmp(props.pci_path, function)));
		CHECK_INT(props.force_flush, wanted != 0);
		CHECK_INT(ha_ctx_device(w.a, 1, &props), 0);
		CHECK(!props.force_flush);
		CHECK_INT(ha_reg_mr(&recv->b, memory, 100, HA_MEM_CUDA, 0, 5, 0, &mr), 0);
		ha_dereg_mr(&recv->b, mr);
		CHECK_INT(w.dummy[0].direct_mrs, wanted != 0);
		CHECK_INT(ha_reg_mr(&recv->b, memory, 100, HA_MEM_HOST, 0, -1, 0, &mr), 0);
		ha_dereg_mr(&recv->b, mr);
		CHECK_INT(w.dummy[0].direct_mrs, wanted != 0);
		world_close(&w);
	}
}

/* Both ends' queue pairs take messages in any order, or both in order. */
static void test_ooo_rq(void)
{
	static const struct {
		bool wanted, listener, connector, used;
		unsigned warnings;
	} cases[] = {
		{ false, true, true, false, 0 },  { true, true, true, true, 0 },
		{ true, true, false, false, 2 },  { true, false, true, false, 2 },
		{ true, false, false, false, 4 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		prepare_world();
		w.config.ib_ooo_rq = cases[i].wanted;
		w.config.ib_adaptive_routing = 1;
		w.dummy[0].unordered = cases[i].listener;
		w.dummy[1].unordered = cases[i].connector;
		open_between(0, 0);
		CHECK_INT(lines_warnings(), cases[i].warnings);
		CHECK_INT(send->b.terms.unordered, cases[i].used);
		CHECK_INT(recv->b.terms.unordered, cases[i].used);
		CHECK_INT(!(send->b.terms.flags & HA_FLAG_UNORDERED), !cases[i].used);
		CHECK_INT(send->b.terms.flags, recv->b.terms.flags);
		/* no threshold of adaptive routing where nothing is held back */
		CHECK_INT(send->b.rail[0].single_max > w.config.ib_ar_threshold, cases[i].used);
		CHECK_INT(send->b.rail[0].qp->qp_num, recv->b.rail[0].setup.peer.qp.qpn);
		CHECK_INT(recv->b.rail[0].qp->qp_num, send->b.rail[0].setup.peer.qp.qpn);
		CHECK_INT(!w.dummy[1].unordered_qps, !cases[i].used);
		world_close(&w);
	}
}

/* The driver says that it can, and then it cannot. */
static void test_ooo_rq_refused(void)
{
	for (int host = 0; host < 2; host++) {
		prepare_world();
		w.config.ib_ooo_rq = true;
		w.dummy[0].unordered = w.dummy[1].unordered = true;
		w.dummy[host].unordered_error = -EOPNOTSUPP;
		open_between(0, 0);
		CHECK(!send->b.terms.unordered && !recv->b.terms.unordered);
		CHECK_INT(w.dummy[host].unordered_qps, 0);
		CHECK(lines_contain("from now on they arrive in order"));
		world_close(&w);
	}
}

/* A port that is down at first may carry a spare later. */
static void test_ooo_rq_of_a_port_that_is_down(void)
{
	for (int alone = 0; alone < 2; alone++) {
		prepare_world();
		w.config.ib_ooo_rq = true;
		for (int host = 0; host < 2; host++) {
			w.dummy[host].unordered = true;
			w.dummy[host].first_alone = alone;
			w.dummy[host].devices[1].ports[0].state = IBV_PORT_DOWN;
		}
		open_between(0, 0);
		CHECK_INT(send->b.terms.unordered, !alone);
		world_close(&w);
	}
}

int main(void)
{
	test_ooo_rq();
	test_ooo_rq_of_a_port_that_is_down();
	test_ooo_rq_refused();
	test_data_direct();
	test_fifo_tc();
	test_ece_enable();
	test_use_inline();
	test_split_data_on_qps();
	test_return_async_events();
	test_subnet_at_the_connector();
	test_subnet_at_the_listener();
	test_subnet_is_left_alone();
	return 0;
}
