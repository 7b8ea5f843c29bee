/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The controller is killed at random moments while clients make, renew and end groups as fast as it
 * answers. What was answered must be so after each restart: every group that a client was given is
 * there, as it was given; none that was ended is; and because a request that is repeated is the
 * same request, none is there that nobody was given.
 */
#include "base/check.h"
#include "base/random.h"
#include "netccl.pb-c.h"
#include "tests/ina/controller/rig.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define CLIENTS 4
#define HELD 24 /* groups of one client at once */
#define KILLS 12

static struct rig r;
static atomic_bool over;
static atomic_ulong made, ended;

struct client {
	struct ha_ina_client *client;
	uint64_t dice;
	unsigned number, held;
	struct {
		struct ha_ina_lease lease;
		uint32_t member[2];
	} group[HELD];
};

static uint32_t draw_random(struct client *c, uint32_t n)
{
	c->dice = c->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((c->dice >> 33) % n);
}

static void check_success(const struct client *c, int err)
{
	if (err)
		fprintf(stderr, "client %u: %s; the log is %s\n", c->number,
			ha_ina_client_error(c->client), r.log);
	CHECK(!err);
}

static void create_group(struct client *c)
{
	struct ha_ina_group_spec w = { .members = 2,
				       .length = 16u << draw_random(c, 4),
				       .lease_ms = 3600000,
				       .name = "crash" };

	w.member = c->group[c->held].member;
	c->group[c->held].member[0] = 0x0a000000 + (c->number << 16) + 1 + draw_random(c, 1000);
	c->group[c->held].member[1] = 0x0a000000 + (c->number << 16) + 2000 + draw_random(c, 1000);
	check_success(c, ha_ina_client_create(c->client, &w, &c->group[c->held].lease));
	if (!c->group[c->held].lease.id) /* the numbers are in quarantine */
		return;
	c->held++;
	atomic_fetch_add(&made, 1);
}

static void end_group(struct client *c)
{
	unsigned i = draw_random(c, c->held);
	const struct ha_ina_lease *l = &c->group[i].lease;
	char message[192];

	/* Said twice because it was not answered the first time, it may be over already. */
	check_success(c, ha_ina_client_destroy(c->client, l->id, l->switch_name, l->key, message));
	c->group[i] = c->group[--c->held];
	atomic_fetch_add(&ended, 1);
}

static void renew_group(struct client *c)
{
	const struct ha_ina_lease *l = &c->group[draw_random(c, c->held)].lease;
	struct ha_ina_heartbeat heartbeat;

	check_success(c, ha_ina_client_renew(c->client, l, (int)draw_random(c, 2), &heartbeat));
	if (!heartbeat.live)
		fprintf(stderr, "client %u: group %u: %s\n", c->number, l->id, heartbeat.message);
	CHECK(heartbeat.live);
	CHECK_INT(heartbeat.epoch, l->epoch);
}

static void *run_client(void *arg)
{
	struct client *c = arg;

	while (!atomic_load(&over)) {
		uint32_t what = draw_random(c, 4);

		if (c->held && what == 0)
			renew_group(c);
		else if (c->held && (what == 1 || c->held == HELD))
			end_group(c);
		else if (c->held < HELD)
			create_group(c);
	}
	return NULL;
}

struct listed {
	const struct client *clients;
	unsigned live, found;
	uint8_t owner[2][HA_BUDDY_SLOTS];
};

static void check_entry(struct listed *l, const Inc__GroupInfo *g)
{
	uint8_t *owner = l->owner[!strcmp(g->switch_, "b")];

	for (uint32_t i = g->aggaddr; i < g->aggaddr + g->agglen; i++) {
		CHECK(!owner[i]);
		owner[i] = 1;
	}
	if (g->state != INC__STATE__LIVE)
		return;
	l->live++;
	for (unsigned k = 0; k < CLIENTS; k++)
		for (unsigned i = 0; i < l->clients[k].held; i++) {
			const struct ha_ina_lease *lease = &l->clients[k].group[i].lease;

			if (lease->id != g->groupid || strcmp(lease->switch_name, g->switch_))
				continue;
			CHECK(lease->agg_addr == g->aggaddr && lease->agg_len == g->agglen &&
			      lease->epoch == g->epoch);
			CHECK_INT(g->n_member, 2);
			CHECK(g->member[0]->ip == l->clients[k].group[i].member[0] &&
			      g->member[1]->ip == l->clients[k].group[i].member[1]);
			l->found++;
		}
}

static void check_page(void *user, const struct Inc__ListResponse *list)
{
	for (size_t i = 0; i < list->n_group; i++)
		check_entry(user, list->group[i]);
}

int main(int argc, char **argv)
{
	static struct client client[CLIENTS];
	static struct listed listed;
	pthread_t thread[CLIENTS];
	uint64_t seed = ha_random_u64();
	unsigned held = 0;

	CHECK(argc >= 2);
	rig_make(&r, argv[1],
		 "switch a address 10.0.0.254 slots 32768 serves 10.0.0.0/8\n"
		 "switch b address 10.0.0.253 slots 32768 serves 10.0.0.0/8\n"
		 "quota * groups 100000 slots 1000000000\nlate 1\n");
	rig_start(&r, NULL);
	rig_await(&r);
	for (unsigned i = 0; i < CLIENTS; i++) {
		client[i] = (struct client) { .client = rig_client(&r, 60000, true),
					      .dice = seed + i,
					      .number = i };
		CHECK(!pthread_create(&thread[i], NULL, run_client, &client[i]));
	}
	for (int i = 0; i < KILLS; i++) {
		unsigned long before = atomic_load(&made);

		for (int k = 0; k < 3000 && atomic_load(&made) < before + 5; k++)
			rig_sleep(10);
		CHECK(atomic_load(&made) >= before + 5);
		rig_sleep((unsigned)(ha_random_u64() % 100));
		rig_stop(&r, i % 4 == 3 ? SIGTERM : SIGKILL);
		rig_start(&r, NULL);
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < CLIENTS; i++)
		pthread_join(thread[i], NULL);
	listed.clients = client;
	check_success(&client[0], ha_ina_client_list(client[0].client, check_page, &listed));
	for (unsigned i = 0; i < CLIENTS; i++) {
		held += client[i].held;
		ha_ina_client_close(client[i].client);
	}
	printf("%d restarts, %lu groups made, %lu ended, %u there\n", KILLS, atomic_load(&made),
	       atomic_load(&ended), held);
	CHECK_INT(listed.found, held);
	CHECK_INT(listed.live, held);
	CHECK_INT(rig_stop(&r, SIGTERM), 0);
	rig_remove(&r);
	return 0;
}
