/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/connect/returns.h"

#include "base/clock.h"
#include "base/log.h"
#include "plugin/connect/accept.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/report/journal.h"
#include "rdma/topo/device.h"
#include "rdma/topo/look.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Between two looks, twice as long each time. */
#define LOOK_MIN_NS (100 * HA_NS_PER_MS)
#define LOOK_MAX_NS (5 * HA_NS_PER_S)
#define LOOK_SHIFT_MAX 10
/* A device that fails so soon after it was back is looked for more rarely from the start. */
#define FLAP_NS (10 * HA_NS_PER_S)
/* What is listed and cannot be opened is most often on its way: logged when it stays so. */
#define LOG_AFTER_NS HA_NS_PER_S
/* From a port's end to the question whether its device is listed, twice as long each time. */
#define CHECK_MIN_NS HA_NS_PER_S
#define CHECK_MAX_NS (30 * HA_NS_PER_S)

struct ha_away {
	LIST_ENTRY(ha_away) entry;
	uint64_t since, look_at;
	unsigned looks;  /* without result, and before: how often it has failed again at once */
	unsigned logged; /* mask by enum ha_sight */
};

/* One look, by a thread where there is a service thread. */
struct ha_search {
	struct ha_ctx *ctx;
	struct ha_away *away; /* whose return is looked for; NULL: only whether `nic` is listed */
	struct ha_nic *nic;
	int first; /* of its ports, the one it is known by */
	struct ha_topo_mark mark;
	struct ha_topo_found found;
	int listed; /* 1, 0, or a negative errno */
	pthread_t thread;
	bool threaded;
	atomic_bool over;
};

/* ---- contexts ---- */

static struct ha_nic *nic_new(struct ha_ctx *ctx, struct ibv_context *verbs,
			      const struct ha_verbs_hot *hot)
{
	struct ha_nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	nic->ctx = ctx;
	nic->verbs = verbs;
	nic->hot = *hot;
	nic->events.fd = -1;
	TAILQ_INSERT_TAIL(&ctx->returns.nics, nic, entry);
	return nic;
}

static void nic_unlink(struct ha_nic *nic)
{
	TAILQ_REMOVE(&nic->ctx->returns.nics, nic, entry);
	ha_loop_remove(&nic->ctx->loop, &nic->events);
	nic->events.fd = -1;
}

static struct ha_nic *nic_of(struct ha_ctx *ctx, const struct ha_topo_device *topo)
{
	struct ha_nic *nic;

	TAILQ_FOREACH(nic, &ctx->returns.nics, entry)
		if (nic->verbs == topo->context)
			return nic;
	return nic_new(ctx, topo->context, &topo->hot);
}

int ha_returns_open(struct ha_ctx *ctx, int (*watch)(struct ha_nic *nic))
{
	TAILQ_INIT(&ctx->returns.nics);
	ctx->returns.check_at = UINT64_MAX;
	ctx->returns.watch = watch;
	for (int i = 0; i < ctx->nports; i++) {
		struct ha_device *dev = &ctx->devices[i];
		struct ha_nic *nic = nic_of(ctx, dev->topo);

		if (!nic)
			return -ENOMEM;
		if (!nic->dev)
			nic->dev = dev;
		dev->now = ha_opening_new(dev, nic);
		if (!dev->now)
			return -ENOMEM;
	}
	return 0;
}

/* ---- a device fails ---- */

/* True: the port has left its opening. */
static bool leave_opening(struct ha_device *dev, struct ha_away *away)
{
	struct ha_opening *next = ha_opening_new(dev, NULL), *past;

	if (!next)
		return false;
	pthread_mutex_lock(&dev->lock);
	past = dev->now;
	dev->now = next;
	pthread_mutex_unlock(&dev->lock);
	LIST_INSERT_HEAD(&dev->ctx->returns.past, past, past);
	ha_topo_lose(dev->ctx->topo, dev->index);
	dev->away = away;
	ha_opening_put(past);
	return true;
}

/* So many times has it failed in a row as soon as it was back. */
static unsigned count_flaps(struct ha_device *dev, uint64_t now)
{
	dev->flaps = dev->back_at && now - dev->back_at < FLAP_NS ? dev->flaps + 1 : 0;
	return dev->flaps;
}

static uint64_t find_pause(unsigned looks)
{
	uint64_t ns = LOOK_MIN_NS << (looks < LOOK_SHIFT_MAX ? looks : LOOK_SHIFT_MAX);

	return ns < LOOK_MAX_NS ? ns : LOOK_MAX_NS;
}

void ha_returns_lost(struct ha_nic *nic)
{
	struct ha_ctx *ctx = nic->ctx;
	struct ha_away *away = calloc(1, sizeof(*away));
	uint64_t now = ha_clock_now(ctx->clock);
	bool left = false;

	/* Release: pairs with ha_opening_lost. */
	atomic_store_explicit(&nic->lost, true, memory_order_release);
	for (int i = 0; away && i < ctx->nports; i++) {
		struct ha_device *dev = &ctx->devices[i];

		if (dev->now->nic != nic || !leave_opening(dev, away))
			continue;
		away->looks = count_flaps(dev, now);
		left = true;
	}
	ha_listens_leave(ctx);
	if (!left) {
		HA_WARN(ha_device_name(nic->dev),
			"no memory to look for its return: it is not used again by this process");
		free(away);
		return;
	}
	away->since = now;
	away->look_at = now + find_pause(away->looks);
	LIST_INSERT_HEAD(&ctx->returns.away, away, entry);
}

/* ---- what nobody uses any more ---- */

static bool is_last(const struct ha_ctx *ctx, const struct ha_nic *nic)
{
	const struct ha_opening *o;

	LIST_FOREACH(o, &ctx->returns.past, past)
		if (o->nic == nic)
			return false;
	for (int i = 0; i < ctx->nports; i++)
		if (ctx->devices[i].now->nic == nic)
			return false;
	return true;
}

static void close_unused(struct ha_ctx *ctx)
{
	struct ha_opening *o, *next;

	for (o = LIST_FIRST(&ctx->returns.past); o; o = next) {
		struct ha_nic *nic = o->nic;

		next = LIST_NEXT(o, past);
		/* Acquire: pairs with the release of its last user. */
		if (atomic_load_explicit(&o->users, memory_order_acquire))
			continue;
		LIST_REMOVE(o, past);
		if (!is_last(ctx, nic))
			nic = NULL;
		else
			nic_unlink(nic);
		ha_reaper_close_opening(ctx, o, nic);
	}
}

/* ---- a look ---- */

static void *search_main(void *arg)
{
	struct ha_search *s = arg;
	const struct ha_ctx *ctx = s->ctx;

	if (s->away)
		ha_topo_look(ctx->verbs, &ctx->config, &s->mark, &s->found);
	else
		s->listed = ha_topo_listed(ctx->verbs, &s->mark);
	/* Release: the result is there. */
	atomic_store_explicit(&s->over, true, memory_order_release);
	ha_loop_wake(&s->ctx->loop);
	return NULL;
}

static void fill_mark(struct ha_search *s)
{
	const struct ha_ctx *ctx = s->ctx;
	const struct ha_topo_device *topo = ctx->devices[s->first].topo;
	struct ha_topo_mark *mark = &s->mark;

	memcpy(mark->name, topo->system_name, sizeof(mark->name));
	memcpy(mark->pci_path, topo->place.pci_path, sizeof(mark->pci_path));
	mark->node_guid = topo->node_guid;
	mark->port = topo->port;
	mark->gid = topo->address.gid;
	mark->is_ethernet = topo->is_ethernet;
	for (int i = 0; i < ctx->nports; i++)
		if (!ctx->devices[i].away)
			memcpy(mark->other[mark->nothers++], ctx->devices[i].topo->system_name,
			       sizeof(mark->other[0]));
}

/* The host program's signals are not for it. */
static bool start_thread(struct ha_search *s)
{
	sigset_t all, old;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = !pthread_create(&s->thread, NULL, search_main, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (started)
		pthread_setname_np(s->thread, "hawser-return");
	return started;
}

static int first_port(const struct ha_ctx *ctx, const struct ha_away *away,
		      const struct ha_nic *nic)
{
	int i = 0;

	while (i < ctx->nports &&
	       (away ? ctx->devices[i].away != away : ctx->devices[i].now->nic != nic))
		i++;
	return i;
}

/* Where no thread can be had, the next look is another try. */
static void start_search(struct ha_ctx *ctx, struct ha_away *away, struct ha_nic *nic)
{
	struct ha_search *s = calloc(1, sizeof(*s));

	if (!s)
		return;
	s->ctx = ctx;
	s->away = away;
	s->nic = nic;
	s->first = first_port(ctx, away, nic);
	fill_mark(s);
	s->threaded = ctx->loop.threaded;
	ctx->returns.search = s;
	if (!s->threaded) {
		search_main(s);
	} else if (!start_thread(s)) {
		ctx->returns.search = NULL;
		free(s);
	}
}

/* ---- it is back ---- */

static void report_return(struct ha_device *dev, const struct ha_away *away, uint64_t now)
{
	const struct ha_topo_device *topo = dev->topo;
	bool renamed = strcmp(topo->system_name, topo->name) != 0;
	struct ha_event event = { .kind = HA_EVENT_DEVICE,
				  .cause = HA_CAUSE_DEVICE_BACK,
				  .device = dev };

	ha_journal_eventf(dev->ctx, &event, "the device is back after %.3f s%s%s%s",
			  (double)(now - away->since) / 1e9, renamed ? ", as " : "",
			  renamed ? topo->system_name : "",
			  topo->up ? "; connections use it again"
				   : "; its port is down still, and is used when it is up");
}

/* The port has no part in it: a device with fewer ports than before. */
static bool has_port(const struct ha_device *dev, const struct ha_topo_found *found)
{
	if (dev->topo->port <= found->nports)
		return true;
	HA_WARN(ha_device_name(dev),
		"the device is back with %d ports, without this one: start the process anew to use "
		"what is there",
		found->nports);
	return false;
}

static void take_port(struct ha_device *dev, struct ha_nic *nic, const struct ha_topo_found *found)
{
	ha_topo_regain(dev->ctx->topo, dev->index, found);
	pthread_mutex_lock(&dev->lock);
	dev->now->nic = nic;
	pthread_mutex_unlock(&dev->lock);
	if (!nic->dev)
		nic->dev = dev;
	atomic_store_explicit(&dev->failed, 0, memory_order_release);
}

static void use_again(struct ha_device *dev, const struct ha_away *away, uint64_t now)
{
	ha_failover_port(dev);
	dev->back_at = now;
	report_return(dev, away, now);
	ha_failover_device_back(dev);
}

/* False: it cannot be had now. */
static bool take_back(struct ha_ctx *ctx, struct ha_away *away, const struct ha_topo_found *found,
		      uint64_t now)
{
	struct ha_nic *nic = nic_new(ctx, found->context, &found->hot);

	if (!nic)
		return false;
	for (int i = 0; i < ctx->nports; i++) {
		struct ha_device *dev = &ctx->devices[i];

		if (dev->away != away)
			continue;
		dev->away = NULL;
		if (has_port(dev, found))
			take_port(dev, nic, found);
	}
	if (nic->dev) {
		(void)ctx->returns.watch(nic);
	} else {
		nic_unlink(nic);
		ctx->verbs->close(ctx->verbs, nic->verbs);
		free(nic);
		return true;
	}
	for (int i = 0; i < ctx->nports; i++)
		if (ctx->devices[i].now->nic == nic)
			use_again(&ctx->devices[i], away, now);
	return true;
}

/* Each cause once, for as long as it is away. */
static void report_why_not(const struct ha_search *s, uint64_t now)
{
	const struct ha_topo_found *found = &s->found;
	const char *name = ha_device_name(&s->ctx->devices[s->first]);
	struct ha_away *away = s->away;

	if (found->sight == HA_SIGHT_NONE || away->logged >> found->sight & 1 ||
	    now - away->since < LOG_AFTER_NS)
		return;
	away->logged |= 1u << found->sight;
	switch (found->sight) {
	case HA_SIGHT_OTHER:
		HA_WARN(name,
			"the device that the system calls %s now is another one (node GUID "
			"%016" PRIx64 ", not %016" PRIx64 "): it is not used; the one that failed "
			"is looked for under any name",
			found->name, found->guid, s->mark.node_guid);
		break;
	case HA_SIGHT_LIST_FAILED:
		HA_WARN(name,
			"it has failed, and whether it is back cannot be seen: no list of devices: "
			"%s",
			strerror(-found->err));
		break;
	default:
		HA_WARN(name,
			"it is listed again, as %s, and cannot be used: %s; it is tried again and "
			"again "
			"(does ibv_devinfo -d %s work?)",
			found->name, strerror(-found->err), found->name);
	}
}

static void finish_look(struct ha_search *s, uint64_t now)
{
	struct ha_away *away = s->away;

	if (s->found.sight == HA_SIGHT_BACK) {
		if (take_back(s->ctx, away, &s->found, now)) {
			LIST_REMOVE(away, entry);
			free(away);
			return;
		}
		s->ctx->verbs->close(s->ctx->verbs, s->found.context);
	} else {
		report_why_not(s, now);
	}
	away->look_at = now + find_pause(++away->looks);
}

/* ---- devices that go without an event ---- */

/* Its ports are down, all of them. */
static bool is_down(const struct ha_ctx *ctx, const struct ha_nic *nic)
{
	bool any = false;

	for (int i = 0; i < ctx->nports; i++) {
		const struct ha_device *dev = &ctx->devices[i];

		if (dev->now->nic != nic)
			continue;
		any = true;
		if (dev->up) /* only the driver writes it */
			return false;
	}
	return any;
}

/* Those behind nic; NULL: from the first. */
static struct ha_nic *next_down(const struct ha_ctx *ctx, struct ha_nic *nic)
{
	nic = nic ? TAILQ_NEXT(nic, entry) : TAILQ_FIRST(&ctx->returns.nics);
	while (nic &&
	       (atomic_load_explicit(&nic->lost, memory_order_relaxed) || !is_down(ctx, nic)))
		nic = TAILQ_NEXT(nic, entry);
	return nic;
}

void ha_returns_port_down(struct ha_ctx *ctx)
{
	if (!ctx->loop.threaded)
		return; /* the caller would have to wait for the list */
	ctx->returns.checks = 0;
	ctx->returns.check_at = ha_clock_now(ctx->clock) + CHECK_MIN_NS;
}

static void lose_unlisted(struct ha_nic *nic)
{
	struct ha_ctx *ctx = nic->ctx;

	for (int i = 0; i < ctx->nports; i++) {
		struct ha_device *dev = &ctx->devices[i];
		struct ha_event event = { .kind = HA_EVENT_DEVICE,
					  .cause = HA_CAUSE_DEVICE_FAILED,
					  .device = dev };

		if (dev->now->nic != nic)
			continue;
		ha_journal_eventf(ctx, &event,
				  "the device is not listed any more, and its port is down: it was "
				  "removed; it is "
				  "used again when it is listed again");
		atomic_store_explicit(&dev->failed, -ENODEV, memory_order_release);
		ha_failover_device(dev, HA_CAUSE_DEVICE_FAILED);
	}
	ha_returns_lost(nic);
}

/* One device after the other; then there is a pause. */
static void check_next(struct ha_ctx *ctx, struct ha_nic *done, uint64_t now)
{
	struct ha_returns *r = &ctx->returns;
	struct ha_nic *nic = next_down(ctx, done);
	uint64_t ns;

	if (nic) {
		r->check_at = now + CHECK_MAX_NS;
		start_search(ctx, NULL, nic);
		return;
	}
	ns = CHECK_MIN_NS << (r->checks < LOOK_SHIFT_MAX ? ++r->checks : LOOK_SHIFT_MAX);
	ns = ns < CHECK_MAX_NS ? ns : CHECK_MAX_NS;
	r->check_at = next_down(ctx, NULL) ? now + ns : UINT64_MAX;
}

static void finish_check(struct ha_search *s, uint64_t now)
{
	struct ha_nic *nic = s->nic, *known;

	TAILQ_FOREACH(known, &s->ctx->returns.nics, entry)
		if (known == nic)
			break;
	/* It may have failed, and gone, meanwhile; or its port is up again. */
	if (!s->listed && known && !atomic_load_explicit(&nic->lost, memory_order_relaxed) &&
	    is_down(s->ctx, nic)) {
		lose_unlisted(nic);
		known = NULL;
	}
	if (known)
		check_next(s->ctx, nic, now);
	else
		s->ctx->returns.check_at = now + CHECK_MIN_NS;
}

/* ---- the round ---- */

static void finish_search(struct ha_ctx *ctx, uint64_t now)
{
	struct ha_search *s = ctx->returns.search;

	if (s->threaded)
		pthread_join(s->thread, NULL);
	ctx->returns.search = NULL;
	if (s->away)
		finish_look(s, now);
	else
		finish_check(s, now);
	free(s);
}

static struct ha_away *first_due(const struct ha_returns *r)
{
	struct ha_away *a, *first = LIST_FIRST(&r->away);

	LIST_FOREACH(a, &r->away, entry)
		if (a->look_at < first->look_at)
			first = a;
	return first;
}

static void start_due(struct ha_ctx *ctx, uint64_t now)
{
	struct ha_returns *r = &ctx->returns;
	struct ha_away *first = first_due(r);

	if (first && now >= first->look_at) {
		first->look_at = now + LOOK_MAX_NS; /* or as its end says */
		start_search(ctx, first, NULL);
	} else if (now >= r->check_at) {
		check_next(ctx, NULL, now);
	}
}

uint64_t ha_returns_round(struct ha_ctx *ctx, uint64_t now)
{
	struct ha_returns *r = &ctx->returns;
	const struct ha_away *first;

	if (!LIST_EMPTY(&r->past))
		close_unused(ctx);
	if (!r->search)
		start_due(ctx, now);
	if (r->search && atomic_load_explicit(&r->search->over, memory_order_acquire))
		finish_search(ctx, now);
	if (r->search)
		return UINT64_MAX; /* its thread wakes us */
	first = first_due(r);
	return first && first->look_at < r->check_at ? first->look_at : r->check_at;
}

/* ---- the end ---- */

static void end_search(struct ha_ctx *ctx)
{
	struct ha_search *s = ctx->returns.search;

	if (!s)
		return;
	if (s->threaded)
		pthread_join(s->thread, NULL);
	if (s->found.sight == HA_SIGHT_BACK)
		ctx->verbs->close(ctx->verbs, s->found.context);
	free(s);
}

static void free_lost_nic(struct ha_ctx *ctx, struct ha_nic *nic)
{
	bool used = false; /* by the topology, which closes it */

	for (int i = 0; i < ctx->nports; i++)
		used |= ctx->topo->devices[i].context == nic->verbs;
	if (!used)
		ctx->verbs->close(ctx->verbs, nic->verbs);
	free(nic);
}

void ha_returns_close(struct ha_ctx *ctx)
{
	struct ha_returns *r = &ctx->returns;
	struct ha_opening *o;
	struct ha_away *away;
	struct ha_nic *nic;

	end_search(ctx);
	while ((away = LIST_FIRST(&r->away)) != NULL) {
		LIST_REMOVE(away, entry);
		free(away);
	}
	while ((o = LIST_FIRST(&r->past)) != NULL) {
		LIST_REMOVE(o, past);
		ha_opening_close(o);
	}
	for (int i = 0; i < ctx->nports; i++)
		ha_device_close(&ctx->devices[i]);
	while ((nic = TAILQ_FIRST(&r->nics)) != NULL) {
		nic_unlink(nic);
		free_lost_nic(ctx, nic);
	}
}
