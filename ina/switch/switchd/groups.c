/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switchd/groups.h"

#include "base/clock.h"
#include "base/log.h"
#include "ina/switch/group_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void ina_groups_open(struct ina_groups *g, struct ina_cores *all)
{
	memset(g, 0, sizeof(*g));
	g->all = all;
	pthread_mutex_init(&g->lock, NULL);
}

void ina_groups_close(struct ina_groups *g)
{
	pthread_mutex_destroy(&g->lock);
}

/* ---- on the cores ---- */

struct change {
	const struct ina_group_config *config;
	uint8_t id;
	uint32_t epoch;
	const char *why[INA_THREADS_MAX]; /* each core writes its own */
	int err[INA_THREADS_MAX];
};

static void install_on_core(void *arg, struct ina_switch *sw, unsigned core)
{
	struct change *c = arg;

	c->err[core] = ina_switch_install(sw, c->config, &c->why[core]);
}

static void remove_on_core(void *arg, struct ina_switch *sw, unsigned core)
{
	const struct change *c = arg;

	ina_switch_remove(sw, c->id, c->epoch);
}

/* ---- what a controller says ---- */

/* With the lock. All cores say the same, for all have the same groups. */
static int install_locked(struct ina_groups *g, const struct ina_group_config *config,
			  const char **why)
{
	struct change c = { .config = config };
	_Atomic uint64_t *over = &g->all->over[config->id];
	uint64_t before = atomic_load_explicit(over, memory_order_relaxed);
	/* what it looks at only commands change, and the lock is ours */
	int err = ina_switch_check(&g->all->core[0]->sw, config, why);

	if (err)
		return err;
	for (unsigned r = 0; r < INA_RANKS_MAX; r++)
		atomic_store_explicit(&g->all->where[config->id][r], 0, memory_order_relaxed);
	ina_cores_command(g->all, install_on_core, &c);
	if (c.err[0]) {
		*why = c.why[0];
		return c.err[0];
	}
	/* Unless a rank has ended the new incarnation already. */
	atomic_compare_exchange_strong_explicit(over, &before, 0, memory_order_relaxed,
						memory_order_relaxed);
	g->config[config->id] = *config;
	g->live[config->id] = true;
	g->installs++;
	HA_INFO("switch", "group %u epoch %u: %u ranks, %u workers, slots %u to %u, %s frames",
		config->id, config->epoch, config->ranks, config->workers, config->base,
		config->base + config->len - 1, config->extended ? "extended" : "old");
	return 0;
}

static void end_locked(struct ina_groups *g, uint8_t id, uint32_t epoch)
{
	if (!g->live[id] || g->config[id].epoch != epoch)
		return;
	atomic_store_explicit(&g->all->over[id], 1ull << 32 | epoch, memory_order_release);
	g->ends++;
	HA_INFO("switch", "group %u epoch %u has ended", id, epoch);
}

static void remove_locked(struct ina_groups *g, uint8_t id, uint32_t epoch)
{
	struct change c = { .id = id, .epoch = epoch };

	if (!g->live[id] || g->config[id].epoch != epoch)
		return;
	ina_cores_command(g->all, remove_on_core, &c);
	g->live[id] = g->from_file[id] = false;
	g->removes++;
}

static int install_group(void *arg, const struct ina_group_config *config, const char **why)
{
	struct ina_groups *g = arg;
	int err;

	pthread_mutex_lock(&g->lock);
	err = install_locked(g, config, why);
	pthread_mutex_unlock(&g->lock);
	return err;
}

static void end_group(void *arg, uint8_t id, uint32_t epoch)
{
	struct ina_groups *g = arg;

	pthread_mutex_lock(&g->lock);
	end_locked(g, id, epoch);
	pthread_mutex_unlock(&g->lock);
}

static void remove_group(void *arg, uint8_t id, uint32_t epoch)
{
	struct ina_groups *g = arg;

	pthread_mutex_lock(&g->lock);
	remove_locked(g, id, epoch);
	pthread_mutex_unlock(&g->lock);
}

/* Since the last time: a core that writes at the same moment is received the next time. */
static bool take_seen(struct ina_cores *all, unsigned id)
{
	bool seen = false;

	for (unsigned i = 0; i < all->ncores; i++)
		seen |= __atomic_exchange_n(&all->core[i]->seen[id], 0, __ATOMIC_RELAXED);
	return seen;
}

static size_t take_seen_groups(void *arg, struct ina_follow_seen *out)
{
	struct ina_groups *g = arg;
	size_t n = 0;

	pthread_mutex_lock(&g->lock);
	for (unsigned id = 1; id < INA_GROUPS; id++)
		if (g->live[id] && take_seen(g->all, id))
			out[n++] = (struct ina_follow_seen) { (uint8_t)id, g->config[id].epoch };
	pthread_mutex_unlock(&g->lock);
	return n;
}

struct ina_follow_ops ina_groups_ops(struct ina_groups *g)
{
	return (struct ina_follow_ops) { .install = install_group,
					 .end = end_group,
					 .remove = remove_group,
					 .seen = take_seen_groups,
					 .arg = g };
}

bool ina_groups_is_over(const struct ina_groups *g, uint8_t id)
{
	return atomic_load_explicit(&g->all->over[id], memory_order_acquire) ==
	       (1ull << 32 | g->config[id].epoch);
}

void ina_groups_count(struct ina_groups *g, struct ina_groups_figures *f)
{
	pthread_mutex_lock(&g->lock);
	*f = (struct ina_groups_figures) { .installs = g->installs, .ends = g->ends };
	for (unsigned id = 1; id < INA_GROUPS; id++)
		if (g->live[id]) {
			f->live++;
			f->over += ina_groups_is_over(g, (uint8_t)id);
		}
	pthread_mutex_unlock(&g->lock);
}

/* ---- what a file says ---- */

/* Those that are not in the file any more. */
static void end_missing(struct ina_groups *g, const struct ina_group_config *wanted)
{
	for (unsigned id = 1; id < INA_GROUPS; id++)
		if (g->live[id] && g->from_file[id] && !wanted[id].id)
			end_locked(g, (uint8_t)id, g->config[id].epoch);
}

/* What becomes of a group of the file. */
enum fate {
	ABSENT,  /* it is not in the file */
	KEPT,    /* it is as the file says */
	MOVED,   /* to be installed */
	REFUSED, /* cannot be: what there was of this number goes on */
};

struct plan {
	/* [INA_GROUPS], by number, id 0 where there is none */
	const struct ina_group_config *wanted;
	enum fate fate[INA_GROUPS];
	int err[INA_GROUPS]; /* of those that are refused */
	const char *why[INA_GROUPS];
};

static bool have_common_slots(const struct ina_group_config *a, const struct ina_group_config *b)
{
	return a->base < b->base + b->len && b->base < a->base + a->len;
}

static void refuse_group(struct plan *p, unsigned id, int err, const char *why)
{
	p->fate[id] = REFUSED;
	p->err[id] = err;
	p->why[id] = why ? why : strerror(-err);
}

/* By itself, whatever slots others have. */
static void judge_group(struct ina_groups *g, struct plan *p, unsigned id)
{
	const struct ina_group_config *c = &p->wanted[id];
	const char *why = NULL;
	int err;

	p->fate[id] = c->id ? MOVED : ABSENT;
	if (!c->id)
		return;
	if (g->live[id] && ina_group_config_same(c, &g->config[id])) {
		p->fate[id] = KEPT;
		return;
	}
	err = ina_switch_check(&g->all->core[0]->sw, c, &why);
	if (err && err != -EEXIST)
		refuse_group(p, id, err, why);
}

/* Of a group that is live: it leaves its slots to others, for it has ended or moves. */
static bool gives_way(const struct ina_groups *g, const struct plan *p, unsigned id)
{
	return p->fate[id] == MOVED || (p->fate[id] == ABSENT && g->from_file[id]);
}

/* Does a group have slots that `id` is to get, before it and after it? */
static bool is_in_the_way(const struct ina_groups *g, const struct plan *p, unsigned id,
			  unsigned other)
{
	const struct ina_group_config *c = &p->wanted[id];

	if (other == id)
		return false;
	if (g->live[other] && !gives_way(g, p, other) && have_common_slots(c, &g->config[other]))
		return true;
	return other < id && p->fate[other] == MOVED && have_common_slots(c, &p->wanted[other]);
}

/* True: a group was refused, whose slots may be in the way of others now. */
static bool refuse_blocked(const struct ina_groups *g, struct plan *p)
{
	bool refused = false;

	for (unsigned id = 1; id < INA_GROUPS; id++)
		for (unsigned other = 1; p->fate[id] == MOVED && other < INA_GROUPS; other++)
			if (is_in_the_way(g, p, id, other)) {
				refuse_group(p, id, -EEXIST,
					     "another group has some of these slots");
				refused = true;
			}
	return refused;
}

/* Those that have ended, and those that are still to move. */
static void make_room(struct ina_groups *g, const struct plan *p, const struct ina_group_config *c)
{
	for (unsigned id = 1; id < INA_GROUPS; id++)
		if (id != c->id && g->live[id] && gives_way(g, p, id) &&
		    have_common_slots(c, &g->config[id]))
			remove_locked(g, (uint8_t)id, g->config[id].epoch);
}

static void install_moved(struct ina_groups *g, struct plan *p)
{
	for (unsigned id = 1; id < INA_GROUPS; id++) {
		const char *why = NULL;
		int err;

		if (p->fate[id] != MOVED)
			continue;
		make_room(g, p, &p->wanted[id]);
		err = install_locked(g, &p->wanted[id], &why);
		if (err)
			refuse_group(p, id, err, why);
		else
			g->from_file[id] = true;
	}
}

/* wanted[INA_GROUPS], by number, id 0 where there is none. */
static int apply_groups(struct ina_groups *g, const struct ina_group_config *wanted, char *why,
			size_t size)
{
	struct plan p = { .wanted = wanted };

	pthread_mutex_lock(&g->lock);
	end_missing(g, wanted);
	for (unsigned id = 1; id < INA_GROUPS; id++)
		judge_group(g, &p, id);
	while (refuse_blocked(g, &p))
		;
	install_moved(g, &p);
	pthread_mutex_unlock(&g->lock);
	for (unsigned id = 1; id < INA_GROUPS; id++)
		if (p.fate[id] == REFUSED) {
			snprintf(why, size, "group %u: %s", id, p.why[id]);
			return p.err[id];
		}
	return 0;
}

int ina_groups_load(struct ina_groups *g, const char *path, bool *read, char *why, size_t size)
{
	static struct ina_group_config wanted[INA_GROUPS]; /* one thread loads */
	int err = ina_group_file(path, ha_clock_now(&ha_clock_live), wanted, why, size);

	*read = !err;
	return err ? err : apply_groups(g, wanted, why, size);
}
