/* SPDX-License-Identifier: BSD-3-Clause */
/* follow.h: a switch's table against a living controller that starts late, dies, and gives slots to
 * others. */
#include "base/check.h"
#include "base/clock.h"
#include "ina/switch/follow.h"
#include "tests/ina/controller/rig.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#define SLOTS 64u

static struct rig r;
/* The switch; its lock, for the follower has its own thread. */
static struct ina_switch sw;
static struct ina_slot slot[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned asked, installed, ended, removed, not_yet;
static struct ina_group_config last;

static int install(void *arg, const struct ina_group_config *config, const char **why)
{
	int err = -EAGAIN;

	pthread_mutex_lock(&lock);
	asked++;
	if (not_yet) {
		not_yet--;
	} else {
		last = *config;
		err = ina_switch_install(&sw, config, why);
		installed += !err;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void end(void *arg, uint8_t id, uint32_t epoch)
{
	pthread_mutex_lock(&lock);
	CHECK_INT(ina_switch_renew(&sw, id, epoch, 0), 0);
	ended++;
	pthread_mutex_unlock(&lock);
}

static void remove_group(void *arg, uint8_t id, uint32_t epoch)
{
	pthread_mutex_lock(&lock);
	CHECK_INT(ina_switch_remove(&sw, id, epoch), 0);
	removed++;
	pthread_mutex_unlock(&lock);
}

static unsigned read_locked(const unsigned *at)
{
	unsigned v;

	pthread_mutex_lock(&lock);
	v = *at;
	pthread_mutex_unlock(&lock);
	return v;
}

/* It comes true within a minute. */
static void await_value(const unsigned *at, unsigned want)
{
	for (int i = 0; i < 6000 && read_locked(at) != want; i++)
		rig_sleep(10);
	CHECK_INT(read_locked(at), want);
}

static struct ha_ina_lease create_group(struct ha_ina_client *c, uint32_t length, uint32_t workers,
					bool extended)
{
	static const uint32_t member[] = { 0x0a000003, 0x0a000001, 0x0a000003 };
	struct ha_ina_group_spec w = { .member = member,
				       .members = workers ? 3 : 2,
				       .length = length,
				       .least = length,
				       .lease_ms = 600000,
				       .workers = workers,
				       .extended = extended };
	struct ha_ina_lease lease;

	/* On a busy machine the controller may have missed the switch, or not yet have noticed that
	 * a group's slots are free. */
	for (int i = 0; i < 6000; i++) {
		CHECK(!ha_ina_client_create(c, &w, &lease));
		if (lease.id)
			return lease;
		rig_sleep(10);
	}
	fprintf(stderr, "%s\n", lease.message);
	CHECK(!"a group was to be had");
	return lease;
}

static void destroy_group(struct ha_ina_client *c, const struct ha_ina_lease *lease)
{
	char message[192];

	CHECK(!ha_ina_client_destroy(c, lease->id, lease->switch_name, lease->key, message) &&
	      !*message);
}

static void await_controller(struct ina_follow *f)
{
	rig_sleep(300);
	CHECK(!ina_follow_answered(f));
	rig_start(&r, NULL);
	rig_await(&r);
	for (int i = 0; i < 6000 && !ina_follow_answered(f); i++)
		rig_sleep(10);
	CHECK(ina_follow_answered(f));
}

/* It dies and comes back, of which a switch must not notice anything. */
static void restart_controller(void)
{
	rig_stop(&r, SIGKILL);
	rig_sleep(500);
	rig_start(&r, NULL);
	rig_await(&r);
	rig_sleep(700);
}

static void follow_all_steps(struct ina_follow *f)
{
	struct ha_ina_client *c;
	struct ha_ina_lease one, two;

	await_controller(f);
	c = rig_client(&r, 30000, true);

	/* As it was asked for; asked again while the switch is not ready. */
	not_yet = 3;
	one = create_group(c, 16, 4, true);
	await_value(&installed, 1);
	CHECK_INT(read_locked(&asked), 4);
	CHECK(last.id == one.id && last.epoch == one.epoch && last.base == one.agg_addr &&
	      last.len == 16);
	CHECK(last.ranks == 3 && last.workers == 4 && last.extended &&
	      last.member[1].addr == 0x0a000001 && !last.first_psn);
	two = create_group(c, 16, 0, false);
	await_value(&installed, 2);
	/* what the switch is set to */
	CHECK(last.workers == 2 && !last.extended && last.ranks == 2);

	restart_controller();
	CHECK(read_locked(&installed) == 2 && !read_locked(&ended) && !read_locked(&removed));

	/* Ended: abort for its ranks. Removed only when somebody needs the slots. */
	destroy_group(c, &one);
	await_value(&ended, 1);
	CHECK(!read_locked(&removed));
	rig_sleep(1200); /* late */
	one = create_group(c, 32, 1, true);
	await_value(&installed, 3);
	destroy_group(c, &two);
	destroy_group(c, &one);
	await_value(&ended, 3);
	rig_sleep(1200);
	one = create_group(c, 64, 1, true);
	await_value(&installed, 4);
	await_value(&removed, 3);
	ha_ina_client_close(c);
}

int main(int argc, char **argv)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 0xfe };
	const struct ina_follow_ops ops = { .install = install,
					    .end = end,
					    .remove = remove_group };
	static const char *const serves[] = { "10.0.0.0/24" };
	struct ina_follow_options o = { .name = "soft",
					.addr = 0x0a0000fe,
					.slots = SLOTS,
					.serves = serves,
					.nserves = 1,
					.workers = 2 };
	struct ina_follow *f;
	char why[256];

	CHECK_INT(argc, 2);
	rig_make(&r, argv[1], "register any\nlate 1\n");
	o.client.address = r.address;
	ina_switch_init(&sw, o.addr, mac, slot, SLOTS);
	f = ina_follow_start(&o, &ops, why, sizeof(why));
	CHECK(f);
	follow_all_steps(f);
	ina_follow_stop(f);
	rig_stop(&r, SIGTERM);
	rig_remove(&r);
	return 0;
}
