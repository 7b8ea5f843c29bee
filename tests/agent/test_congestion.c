/* SPDX-License-Identifier: BSD-3-Clause */
/* The congestion policy over the counters of a host: shares at rest, reaction, hysteresis, links,
 * restart. */
#include "agent/advisor.h"

#include "base/check.h"
#include "base/clock.h"
#include "tests/agent/host.h"

#include <arpa/inet.h>
#include <unistd.h>

#define SOUT "/sys/class/infiniband/mlx5_0/ports/1/"
#define SUP "/sys/class/infiniband/mlx5_1/ports/1/"
#define CNP "hw_counters/rp_cnp_handled"
#define REST (1024 * 200 / 600)
#define TICK (500 * HA_NS_PER_MS)

static const char *folder;
static struct tree host;
static struct mpib_hint_shm shm;
static struct ha_slots slots;
static struct ha_advisor a;
static struct ha_owner *me;
static uint64_t now, sout_cnp, sup_cnp;

static uint32_t add_flow(uint32_t conn_id, const char *sup)
{
	struct mpib_register m = {
		.conn_id = conn_id,
		.sout_src_ip = inet_addr("10.0.0.1"),
		.sout_dst_ip = htonl(0x0a000064 + conn_id),
		.sup_src_ip = inet_addr(sup),
	};
	uint32_t slot;

	CHECK_INT(ha_slots_register(&slots, me, &m, &slot), MPIB_STATUS_OK);
	return slot;
}

static void open_advisor(void)
{
	now = HA_NS_PER_S;
	sout_cnp = 30;
	sup_cnp = 0;
	host_lay(&host, folder, "two_mlx5");
	ha_slots_open(&slots, &shm, now);
	CHECK(!ha_advisor_open(&a, &slots, "congestion", host.root, now));
	me = ha_owner_get(&slots, getpid(), 0);
}

static void close_advisor(void)
{
	ha_advisor_close(&a);
	ha_slots_close(&slots);
	memset(&shm, 0, sizeof(shm));
	tree_remove(&host);
}

/* Looks, each with so many notifications at the two ports. */
static void tick_advisor(int n, unsigned sout, unsigned sup)
{
	while (n--) {
		host_number(&host, SOUT CNP, sout_cnp += sout);
		host_number(&host, SUP CNP, sup_cnp += sup);
		now += TICK;
		ha_advisor_tick(&a, now);
		CHECK(ha_slots_consistent(&slots));
	}
}

static unsigned sup_share(uint32_t slot)
{
	return shm.entries[slot].sup_bw;
}

static void at_rest_by_speed(void)
{
	uint32_t slot;

	open_advisor();
	slot = add_flow(1, "10.8.0.1");
	CHECK_INT(sup_share(slot), REST); /* at once, with the answer */
	tick_advisor(20, 0, 0);
	CHECK_INT(sup_share(slot), REST);
	tick_advisor(20, 1, 1); /* 2 per second: noise */
	CHECK_INT(sup_share(slot), REST);
	CHECK_TEXT(ha_advisor_source(&a, slot), "congestion");
	CHECK_INT(sup_share(add_flow(2, "0.0.0.0")), 0);   /* without SUP */
	CHECK_INT(sup_share(add_flow(3, "10.99.0.1")), 0); /* a SUP that nobody knows */
	tick_advisor(3, 0, 0);
	close_advisor();
}

static void a_congested_sup_loses_its_share_and_gets_it_back(void)
{
	uint32_t slot;
	uint64_t writes;

	open_advisor();
	slot = add_flow(1, "10.8.0.1");
	tick_advisor(1, 0, 0);
	tick_advisor(1, 0, 500); /* once is no congestion */
	CHECK_INT(sup_share(slot), REST);
	tick_advisor(1, 0, 500);
	CHECK_INT(sup_share(slot), REST - REST / 4);
	tick_advisor(30, 0, 500);
	CHECK_INT(sup_share(slot), 0);
	writes = slots.writes;
	tick_advisor(4, 0, 0); /* silence, not yet long enough */
	CHECK_INT(sup_share(slot), 0);
	CHECK(a.congestion[1].congested || a.congestion[0].congested);
	tick_advisor(1, 0, 0);
	CHECK(!a.congestion[0].congested && !a.congestion[1].congested);
	tick_advisor(60, 0, 0);
	CHECK_INT(sup_share(slot), REST);
	/* in steps, not with every look */
	CHECK(slots.writes - writes <= REST / HA_CONGESTION_STEP + 2);
	close_advisor();
}

static void a_congested_sout_gives_to_sup(void)
{
	uint32_t slot;

	open_advisor();
	slot = add_flow(1, "10.8.0.1");
	tick_advisor(1, 0, 0);
	tick_advisor(2, 500, 0);
	CHECK_INT(sup_share(slot), REST + HA_CONGESTION_SHIFT);
	tick_advisor(50, 500, 0);
	CHECK(sup_share(slot) <= HA_CONGESTION_MOST &&
	      sup_share(slot) > HA_CONGESTION_MOST - HA_CONGESTION_STEP);
	tick_advisor(2, 500, 500); /* now both */
	CHECK(sup_share(slot) > HA_CONGESTION_MOST - HA_CONGESTION_STEP);
	close_advisor();
}

/* One look with a fault, one without, for ever: nothing moves. */
static void flicker_moves_nothing(void)
{
	uint32_t slot;
	uint64_t writes;

	open_advisor();
	slot = add_flow(1, "10.8.0.1");
	tick_advisor(2, 0, 0);
	writes = slots.writes;
	for (int i = 0; i < 100; i++) {
		tick_advisor(1, 0, 2000);
		tick_advisor(1, 0, 0);
	}
	CHECK_INT(sup_share(slot), REST);
	CHECK_INT(slots.writes, writes);
	close_advisor();
}

static void losses_weigh_more_than_marks(void)
{
	uint32_t slot;

	open_advisor();
	slot = add_flow(1, "10.8.0.1");
	tick_advisor(1, 0, 0);
	for (unsigned i = 1; i <= 3; i++) {
		host_number(&host, SUP "hw_counters/packet_seq_err", i * 6); /* 12 per second */
		tick_advisor(1, 0, 0);
	}
	CHECK(sup_share(slot) < REST);
	close_advisor();
}

static void a_port_without_link_has_nothing(void)
{
	uint32_t slot;

	open_advisor();
	slot = add_flow(1, "10.8.0.1");
	tick_advisor(1, 0, 0);
	tree_file(&host, SUP "state", "1: DOWN\n");
	tick_advisor(1, 0, 0);
	CHECK_INT(sup_share(slot), 0);
	tree_file(&host, SOUT "state", "1: DOWN\n");
	tick_advisor(5, 0, 0);
	CHECK_INT(sup_share(slot), 0); /* both: as it was */
	tree_file(&host, SUP "state", "4: ACTIVE\n");
	tick_advisor(1, 0, 0);
	CHECK_INT(sup_share(slot), 1024);
	tree_file(&host, SOUT "state", "4: ACTIVE\n");
	tick_advisor(100, 0, 0);
	CHECK_INT(sup_share(slot), REST);
	close_advisor();
}

/* The next agent goes on from what the last one wrote. */
static void a_restart_does_not_jump(void)
{
	uint32_t slot;
	unsigned before;

	open_advisor();
	slot = add_flow(1, "10.8.0.1");
	tick_advisor(1, 0, 0);
	tick_advisor(4, 0, 500);
	before = sup_share(slot);
	CHECK(before && before < REST / 2);
	ha_advisor_close(&a);
	ha_slots_close(&slots);
	ha_slots_open(&slots, &shm, now);
	CHECK(!ha_advisor_open(&a, &slots, "congestion", host.root, now));
	me = ha_owner_get(&slots, getpid(), 0);
	tick_advisor(3, 0, 500);
	CHECK_INT(sup_share(slot), before); /* nobody has come back yet */
	CHECK_TEXT(ha_advisor_source(&a, slot), "inherited");
	CHECK_INT(add_flow(1, "10.8.0.1"), slot);
	CHECK_INT(sup_share(slot), before);
	tick_advisor(80, 0, 0);
	CHECK_INT(sup_share(slot), REST);
	CHECK_INT(ha_slots_deregister(&slots, me, 1), MPIB_STATUS_OK);
	CHECK_INT(add_flow(2, "0.0.0.0"), slot); /* another flow in the slot starts anew */
	CHECK_INT(sup_share(slot), 0);
	close_advisor();
}

static void the_hand_comes_first(void)
{
	struct ha_rule rule;
	uint32_t slot;

	open_advisor();
	slot = add_flow(1, "10.8.0.1");
	CHECK(!ha_rule_parse("10.0.0.0/24", "*", "777", &rule));
	CHECK(!ha_rules_set(&a.manual, &rule));
	ha_advisor_rules_changed(&a);
	CHECK_INT(sup_share(slot), 777);
	CHECK_TEXT(ha_advisor_source(&a, slot), "manual");
	tick_advisor(10, 0, 500);
	CHECK_INT(sup_share(slot), 777);
	CHECK(ha_rules_unset(&a.manual, &rule));
	ha_advisor_rules_changed(&a);
	CHECK(sup_share(slot) < REST); /* the policy went on watching */
	close_advisor();
}

static void rules_of_a_file(void)
{
	char path[128], policy[140];
	uint32_t slot;

	open_advisor();
	ha_advisor_close(&a);
	CHECK_TEXT(ha_advisor_open(&a, &slots, "statics", "", now),
		   "a policy is manual, static:FILE or congestion");
	CHECK_TEXT(ha_advisor_open(&a, &slots, "static:", "", now),
		   "static: needs the name of a file");
	CHECK(ha_advisor_open(&a, &slots, "static:/nonexistent", "", now));
	tree_file(&host, "/rules", "* * 100\n10.0.0.1 * 200\n");
	snprintf(path, sizeof(path), "%s/rules", host.root);
	snprintf(policy, sizeof(policy), "static:%s", path);
	CHECK(!ha_advisor_open(&a, &slots, policy, "", now));
	slot = add_flow(1, "10.8.0.1");
	CHECK_INT(sup_share(slot), 200);
	CHECK_TEXT(ha_advisor_source(&a, slot), "static");
	tree_file(&host, "/rules", "* * 100\n");
	a.changed.tv_nsec--; /* whatever the clock's grain */
	ha_advisor_tick(&a, now += TICK);
	CHECK_INT(sup_share(slot), 100);
	tree_file(&host, "/rules", "* * wrong\n");
	a.changed.tv_nsec--;
	ha_advisor_tick(&a, now += TICK);
	CHECK_INT(sup_share(slot), 100);
	unlink(path);
	ha_advisor_tick(&a, now += TICK);
	CHECK_INT(sup_share(slot), 100);
	close_advisor();
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	folder = argv[1];
	at_rest_by_speed();
	a_congested_sup_loses_its_share_and_gets_it_back();
	a_congested_sout_gives_to_sup();
	flicker_moves_nothing();
	losses_weigh_more_than_marks();
	a_port_without_link_has_nothing();
	a_restart_does_not_jump();
	the_hand_comes_first();
	rules_of_a_file();
	return 0;
}
