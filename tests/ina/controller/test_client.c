/* SPDX-License-Identifier: BSD-3-Clause */
/* client.h against a controller that is there, down, hanging, restarted in between, full,
 * unwilling, and no controller. */
#include "base/check.h"
#include "base/clock.h"
#include "netccl.pb-c.h"
#include "tests/ina/controller/relay.h"
#include "tests/ina/controller/rig.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* none ends by itself while this test runs: each end is another table for the switch */
#define LEASE_MS 600000

#define RENEW_MS 3000 /* a call waits so long */

static struct rig r;
static const uint32_t members[] = { 0x0a000003, 0x0a000001, 0x0a000002 };

static void check_error(const struct ha_ina_client *c, const char *words)
{
	const char *line = ha_ina_client_error(c);

	if (!strstr(line, words))
		fprintf(stderr, "'%s' is not in '%s'\n", words, line);
	CHECK(strstr(line, words) && strstr(line, "controller ") && !strchr(line, '\n'));
}

static struct ha_ina_group_spec make_spec(uint32_t length, uint32_t lease_ms)
{
	return (struct ha_ina_group_spec) { .member = members,
					    .members = 3,
					    .length = length,
					    .least = length,
					    .lease_ms = lease_ms,
					    .name = "test" };
}

static void controller_is_there(void)
{
	struct ha_ina_client *c = rig_client(&r, 30000, false);
	struct ha_ina_group_spec w = make_spec(256, LEASE_MS);
	struct ha_ina_lease lease, other;
	struct ha_ina_heartbeat heartbeat;
	char message[192];

	CHECK(!ha_ina_client_create(c, &w, &lease));
	CHECK(lease.id && lease.agg_len == 256 && lease.key && lease.lease_ms == LEASE_MS);
	CHECK_INT(lease.switch_address, 0x0a0000fe);
	CHECK_TEXT(lease.switch_name, "s");
	CHECK(!ha_ina_client_create(c, &w, &other));
	CHECK(other.id && other.id != lease.id);
	CHECK(!ha_ina_client_renew(c, &lease, 2, &heartbeat));
	CHECK(heartbeat.live && heartbeat.epoch == lease.epoch && !heartbeat.switch_away &&
	      !*heartbeat.message);
	CHECK(!ha_ina_client_destroy(c, lease.id, lease.switch_name, lease.key, message) &&
	      !*message);
	CHECK(!ha_ina_client_destroy(c, lease.id, lease.switch_name, lease.key, message));
	CHECK(strstr(message, "has ended before"));
	CHECK(!ha_ina_client_renew(c, &lease, 2, &heartbeat));
	CHECK(!heartbeat.live && strstr(heartbeat.message, "has ended: a client has ended it"));
	lease = other;
	lease.key ^= 1;
	CHECK(!ha_ina_client_renew(c, &lease, -1, &heartbeat));
	CHECK(!heartbeat.live && strstr(heartbeat.message, "the group of this key is over"));
	CHECK(!ha_ina_client_destroy(c, other.id, NULL, 5, message));
	CHECK(strstr(message, "of this key"));
	w.members = 1;
	CHECK_INT(ha_ina_client_create(c, &w, &lease), -EINVAL);
	check_error(c, "2 to 32 members, not 1");
	w = make_spec(32768, 0);
	CHECK(!ha_ina_client_create(c, &w, &lease));
	CHECK(!lease.id && !lease.agg_len &&
	      strstr(lease.message, "switch s has no 32768 aggregators"));
	CHECK(!ha_ina_client_destroy(c, other.id, NULL, other.key, message) && !*message);
	ha_ina_client_close(c);
}

static void check_joined(const struct ha_ina_group_info *info, const struct ha_ina_lease *lease)
{
	CHECK(info->id == lease->id && info->ranks == 3 && info->workers == 4 && info->extended &&
	      info->base == lease->agg_addr);
	CHECK(info->len == 256 && info->epoch == lease->epoch && info->lease_ms == LEASE_MS &&
	      info->switch_address == 0x0a0000fe);
	CHECK(!memcmp(info->member, members, sizeof(members)));
}

/* A rank joins once, whatever is restarted; when all have left the group is over. */
static void ranks_join_once(void)
{
	struct ha_ina_client *c = rig_client(&r, 30000, true);
	struct ha_ina_group_spec w = make_spec(256, LEASE_MS);
	struct ha_ina_group_info info;
	struct ha_ina_lease lease;
	struct ha_ina_heartbeat heartbeat;

	w.workers = 4;
	w.extended = true;
	CHECK(!ha_ina_client_create(c, &w, &lease));
	for (int restarted = 0; restarted < 2; restarted++) {
		CHECK(!ha_ina_client_join(c, &lease, 1, 77, &info, &heartbeat) && heartbeat.live &&
		      heartbeat.epoch == lease.epoch);
		check_joined(&info, &lease);
		CHECK_INT(ha_ina_client_join(c, &lease, 1, 78, &info, &heartbeat), -EINVAL);
		check_error(c, "rank 1 of group");
		check_error(c, "has joined before");
		if (!restarted) {
			CHECK(rig_stop(&r, SIGKILL) == SIGKILL);
			rig_start(&r, NULL);
			rig_await(&r);
		}
	}
	CHECK_INT(ha_ina_client_join(c, &lease, 3, 77, &info, &heartbeat), -EINVAL);
	CHECK_INT(ha_ina_client_join(c, &lease, 0, 0, &info, &heartbeat), -EINVAL);
	/* Who was refused does not leave for the one that joined, nor does who says nothing of
	 * itself. */
	CHECK_INT(ha_ina_client_leave(c, &lease, 1, 78, &heartbeat), -EINVAL);
	check_error(c, "only that one can leave it");
	CHECK_INT(ha_ina_client_leave(c, &lease, 1, 0, &heartbeat), -EINVAL);
	for (unsigned rank = 0; rank < 3; rank++) {
		CHECK(!ha_ina_client_renew(c, &lease, -1, &heartbeat) && heartbeat.live);
		CHECK(!ha_ina_client_leave(c, &lease, rank, rank == 1 ? 77 : 0, &heartbeat));
	}
	CHECK(!ha_ina_client_renew(c, &lease, 0, &heartbeat));
	CHECK(!heartbeat.live && strstr(heartbeat.message, "all ranks have left"));
	CHECK(!ha_ina_client_join(c, &lease, 0, 5, &info, &heartbeat) && !heartbeat.live);
	ha_ina_client_close(c);
}

static void no_page(void *user, const struct Inc__ListResponse *list)
{
}

static void controller_is_down(void)
{
	struct ha_ina_client *c = rig_client(&r, 120000, false),
			     *retrying = rig_client(&r, 5000, true);
	uint64_t began = ha_clock_now(&ha_clock_live);

	CHECK_INT(ha_ina_client_list(c, no_page, NULL), -ECONNREFUSED);
	check_error(c, "is ha-controller running there");
	CHECK_INT(ha_ina_client_list(retrying, no_page, NULL), -ECONNREFUSED);
	check_error(retrying, "is ha-controller running there");
	CHECK(ha_clock_now(&ha_clock_live) - began < 60 * HA_NS_PER_S);
	ha_ina_client_close(c);
	ha_ina_client_close(retrying);
}

/* Renews, as it were, until there is an answer. */
struct renewing {
	struct ha_ina_client *client;
	atomic_bool is_back;
	unsigned missed; /* calls that found no controller though it was there when they began */
};

static void *list_until_answered(void *arg)
{
	struct renewing *w = arg;
	bool is_back;

	for (;;) {
		is_back = atomic_load(&w->is_back);
		if (!ha_ina_client_list(w->client, no_page, NULL))
			return NULL;
		w->missed += is_back;
	}
}

/* Who calls again and again while the controller is restarted is answered when it is there: leases
 * end that are not renewed then. */
static void controller_comes_back(void)
{
	for (int i = 0; i < 3; i++) {
		struct renewing w = { .client = rig_client(&r, RENEW_MS, true) };
		pthread_t thread;

		CHECK_INT(ha_ina_client_list(w.client, no_page, NULL), 0);
		CHECK_INT(rig_stop(&r, SIGTERM), 0);
		CHECK(!pthread_create(&thread, NULL, list_until_answered, &w));
		usleep(1000 * RENEW_MS + 500000 * (i + 1));
		rig_start(&r,
			  NULL); /* (no other call meanwhile: it would poll for this one, too) */
		usleep(200000);
		atomic_store(&w.is_back, true);
		CHECK(!pthread_join(thread, NULL));
		CHECK_INT(w.missed, 0);
		ha_ina_client_close(w.client);
		rig_await(&r);
	}
}

static void controller_hangs(void)
{
	struct ha_ina_client *c = rig_client(&r, 300, true), *new = rig_client(&r, 300, false);
	struct ha_ina_group_spec w = make_spec(16, LEASE_MS);
	struct ha_ina_lease lease;

	CHECK(!kill(r.pid, SIGSTOP));
	CHECK_INT(ha_ina_client_create(c, &w, &lease), -ETIMEDOUT);
	check_error(c, "no answer within 300 ms");
	CHECK_INT(ha_ina_client_list(new, no_page, NULL), -ETIMEDOUT);
	CHECK(!kill(r.pid, SIGCONT));
	rig_await(&r);
	ha_ina_client_close(new);
	ha_ina_client_close(c);
	c = rig_client(&r, 30000, false);
	CHECK(!ha_ina_client_create(c, &w, &lease) && lease.id);
	ha_ina_client_close(c);
}

/* of groups that end by themselves */
#define SHORT_LEASE_MS 3000

struct search {
	uint8_t id;
	bool live;
};

static void find_live(void *user, const struct Inc__ListResponse *list)
{
	struct search *s = user;

	for (size_t i = 0; i < list->n_group; i++)
		if (list->group[i]->groupid == s->id)
			s->live = list->group[i]->state == INC__STATE__LIVE;
}

/* Asks without renewing anything. */
static bool is_live(struct ha_ina_client *c, uint8_t id)
{
	struct search s = { .id = id };

	CHECK(!ha_ina_client_list(c, find_live, &s));
	return s.live;
}

/* A group of three ranks, and a controller stopped for longer than its lease. How long the group
 * was without a renewal while the controller could receive one. */
static uint64_t stop_for_a_lease(struct ha_ina_client *c, struct ha_ina_lease *lease,
				 struct ha_ina_heartbeat *heartbeat)
{
	struct ha_ina_group_spec w = make_spec(16, SHORT_LEASE_MS);
	struct ha_ina_group_info info;
	uint64_t joined, stopped, continued;

	CHECK(!ha_ina_client_create(c, &w, lease) && lease->id);
	joined = ha_clock_now(&ha_clock_live);
	for (unsigned rank = 0; rank < 3; rank++)
		CHECK(!ha_ina_client_join(c, lease, rank, 1, &info, heartbeat));
	CHECK(!kill(r.pid, SIGSTOP));
	stopped = ha_clock_now(&ha_clock_live);
	rig_sleep(SHORT_LEASE_MS + 500);
	continued = ha_clock_now(&ha_clock_live);
	CHECK(!kill(r.pid, SIGCONT));
	rig_sleep(200); /* it looks at its clock before anybody sends */
	CHECK(!ha_ina_client_renew(c, lease, 0, heartbeat));
	return ha_clock_now(&ha_clock_live) - continued + stopped - joined;
}

/* A controller that stood still for longer than a lease could receive nothing: no group ends for
 * that, and no rank was silent. Where this test itself was late by a lease, that says nothing. */
static void stood_still(void)
{
	struct ha_ina_client *c = rig_client(&r, 30000, false);
	struct ha_ina_lease lease;
	struct ha_ina_heartbeat heartbeat;
	uint64_t late = stop_for_a_lease(c, &lease, &heartbeat);

	for (int i = 0; i < 60 && late >= SHORT_LEASE_MS * HA_NS_PER_MS / 2; i++)
		late = stop_for_a_lease(c, &lease, &heartbeat);
	CHECK(late < SHORT_LEASE_MS * HA_NS_PER_MS / 2);
	if (!heartbeat.live)
		fprintf(stderr, "%s\n", heartbeat.message);
	CHECK(heartbeat.live);
	CHECK_INT(heartbeat.silent, 0);
	/* And those that are silent now are, however long the controller waits for a processor:
	 * its leases are that much longer. */
	while (is_live(c, lease.id))
		rig_sleep(100);
	CHECK(!ha_ina_client_renew(c, &lease, 0, &heartbeat));
	CHECK(!heartbeat.live && strstr(heartbeat.message, "nobody has renewed it"));
	ha_ina_client_close(c);
}

static void count_live(void *user, const struct Inc__ListResponse *list)
{
	for (size_t i = 0; i < list->n_group; i++)
		*(unsigned *)user += list->group[i]->state == INC__STATE__LIVE &&
				     !strcmp(list->group[i]->name, "lost");
}

static unsigned live_now(struct ha_ina_client *c)
{
	unsigned n = 0;

	CHECK(!ha_ina_client_list(c, count_live, &n));
	return n;
}

/* The answer to a request is lost: asked again, it is the same request; answered once, it is
 * another. */
static void answer_lost(void)
{
	struct ha_ina_client_options options = { .deadline_ms = 1000, .retry = true };
	struct ha_ina_client *direct = rig_client(&r, 60000, false), *c;
	struct ha_ina_lease lease, second;
	struct ha_ina_group_spec w = make_spec(16, LEASE_MS);
	char at[96], address[112], why[256];
	struct relay relay;
	int err;

	w.name = "lost";
	snprintf(at, sizeof(at), "%s/relay", r.top);
	snprintf(address, sizeof(address), "unix:%s", at);
	options.address = address;
	relay_start(&relay, at, r.address + strlen("unix:"));
	c = ha_ina_client_open(&options, why, sizeof(why));
	CHECK(c);
	for (int i = 0; i < 60 && ha_ina_client_list(c, no_page, NULL); i++)
		;
	atomic_store(&relay.withholds, true);
	for (int i = 0; i < 60 && !live_now(direct); i++)
		CHECK(ha_ina_client_create(c, &w, &lease));
	CHECK_INT(live_now(direct), 1);
	atomic_store(&relay.withholds, false);
	for (int i = 0; i < 60 && (err = ha_ina_client_create(c, &w, &lease)) != 0; i++)
		;
	CHECK(!err && lease.id);
	CHECK_INT(live_now(direct), 1);
	for (int i = 0; i < 60 && (err = ha_ina_client_create(c, &w, &second)) != 0; i++)
		;
	CHECK(!err && second.id && second.id != lease.id);
	CHECK_INT(live_now(direct), 2);
	ha_ina_client_close(c);
	ha_ina_client_close(direct);
	relay_stop(&relay);
}

struct renewal {
	struct ha_ina_client *client;
	struct ha_ina_lease lease;
};

static void *renew_while_away(void *arg)
{
	struct renewal *t = arg;
	struct ha_ina_group_spec w = make_spec(16, LEASE_MS);
	struct ha_ina_lease other;
	struct ha_ina_heartbeat heartbeat;

	if (ha_ina_client_renew(t->client, &t->lease, 0, &heartbeat))
		fprintf(stderr, "%s\n", ha_ina_client_error(t->client));
	CHECK(heartbeat.live && heartbeat.epoch == t->lease.epoch);
	CHECK(!ha_ina_client_create(t->client, &w, &other));
	CHECK(other.id && other.id != t->lease.id);
	return NULL;
}

static void restarted_in_between(void)
{
	struct renewal renewal = { .client = rig_client(&r, 60000, true) };
	struct ha_ina_group_spec w = make_spec(16, LEASE_MS);
	pthread_t thread;

	CHECK(!ha_ina_client_create(renewal.client, &w, &renewal.lease) && renewal.lease.id);
	rig_stop(&r, SIGKILL);
	CHECK(!pthread_create(&thread, NULL, renew_while_away, &renewal));
	rig_sleep(300);
	rig_start(&r, NULL);
	pthread_join(thread, NULL);
	ha_ina_client_close(renewal.client);
}

/* A table comes as soon as there is another one, a renewed epoch included; and no longer than it
 * waits. */
static void a_switch(void)
{
	struct ha_ina_client *c = rig_client(&r, 30000, false);
	Inc__SwitchHeartbeatRequest q = INC__SWITCH_HEARTBEAT_REQUEST__INIT;
	Inc__SwitchHeartbeatResponse *a;
	uint64_t began;

	q.name = (char *)(uintptr_t) "s";
	q.incarnation = 7;
	CHECK(!ha_ina_client_switch(c, &q, &a));
	CHECK(a->changed && a->n_group >= 2);
	q.version = a->version;
	inc__switch_heartbeat_response__free_unpacked(a, NULL);
	q.waitms = 200;
	began = ha_clock_now(&ha_clock_live);
	CHECK(!ha_ina_client_switch(c, &q, &a));
	CHECK(!a->changed && !a->n_group &&
	      ha_clock_now(&ha_clock_live) - began >= 200 * HA_NS_PER_MS);
	inc__switch_heartbeat_response__free_unpacked(a, NULL);
	ha_ina_client_close(c);
}

/* Something else listens there. */
static void no_controller(void)
{
	struct ha_ina_client_options options = { .address = "unix:/tmp/hawser-there-is-none",
						 .deadline_ms = 60000 };
	struct ha_ina_client *c;
	char why[256];

	c = ha_ina_client_open(&options, why, sizeof(why));
	CHECK(c);
	CHECK_INT(ha_ina_client_list(c, no_page, NULL), -ECONNREFUSED);
	ha_ina_client_close(c);
	options.address = "no such address at all";
	c = ha_ina_client_open(&options, why, sizeof(why));
	CHECK(c);
	CHECK(ha_ina_client_list(c, no_page, NULL) < 0);
	check_error(c, "no such address at all");
	ha_ina_client_close(c);
	options.tls.cert = "/dev/null";
	CHECK(!ha_ina_client_open(&options, why, sizeof(why)));
	CHECK_TEXT(why, "a certificate and its key come together");
	options.tls.key = "/dev/null";
	CHECK(!ha_ina_client_open(&options, why, sizeof(why)));
	CHECK_TEXT(why, "/dev/null: no PEM file");
}

int main(int argc, char **argv)
{
	CHECK(argc >= 2);
	rig_make(&r, argv[1],
		 "switch s address 10.0.0.254 slots 8192 serves 10.0.0.0/8\nregister any\n");
	controller_is_down();
	no_controller();
	rig_start(&r, NULL);
	rig_await(&r);
	controller_is_there();
	controller_comes_back();
	ranks_join_once();
	controller_hangs();
	stood_still();
	answer_lost();
	restarted_in_between();
	a_switch();
	CHECK_INT(rig_stop(&r, SIGTERM), 0);
	rig_remove(&r);
	return 0;
}
