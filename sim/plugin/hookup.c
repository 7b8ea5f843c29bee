/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/hookup.h"

#include "sim/plugin/faults.h"
#include "sim/plugin/world.h"

#include <stdlib.h>

#define USUAL_NS 100000u /* at most, where nothing is wrong */
/* the kernel's, for the link address of a peer that does not answer */
#define SEARCH_NS UINT64_C(3000000000)

struct sim_hookup {
	SLIST_ENTRY(sim_hookup) entry;
	struct sim_host *host;
	struct ha_hookup *h; /* NULL: done */
	bool fails;
};

static void carry_out(struct sim_hookup *s)
{
	struct ha_hookup *h = s->h;
	struct sim_device *dev = (struct sim_device *)h->qp->context->device;

	s->h = NULL;
	dev->knobs.unreachable = s->fails;
	sim_mix(s->host->world, 0xc0 + s->fails);
	ha_hookup_run(h);
	dev->knobs.unreachable = false;
}

static void carry_out_pending(void *arg)
{
	struct sim_hookup *s = arg;

	if (s->h)
		carry_out(s);
}

static void start(void *arg, struct ha_hookup *h)
{
	struct sim_host *host = arg;
	struct sim_world *w = host->world;
	struct sim_device *dev = (struct sim_device *)h->qp->context->device;
	struct sim_hookup *s = calloc(1, sizeof(*s));
	uint64_t ns;

	if (!s)
		abort();
	s->host = host;
	s->h = h;
	SLIST_INSERT_HEAD(&host->hookups, s, entry);
	ns = sr_rng_below(&host->rng, USUAL_NS) +
	     sim_faults_connecting(w, host->index, dev->index, &s->fails);
	if (!sim_device_reaches(dev, &h->rtr.ah_attr.grh.dgid))
		ns += SEARCH_NS;
	if (ns >= USUAL_NS)
		sim_trace_line(w, "host %u sim%u: a queue pair takes %.3f ms to connect%s",
			       host->index, dev->index, (double)ns / 1e6,
			       s->fails ? " and fails" : "");
	if (sr_memwire_at(w->wire, sim_now(w) + ns, carry_out_pending, s))
		abort();
}

static void finish(void *arg)
{
	struct sim_host *host = arg;
	struct sim_hookup *s;

	SLIST_FOREACH(s, &host->hookups, entry)
		carry_out_pending(s);
}

const struct ha_hookup_ops sim_hookup_ops = { .start = start, .finish = finish };

void sim_hookups_free(struct sim_host *h)
{
	struct sim_hookup *s;

	while ((s = SLIST_FIRST(&h->hookups)) != NULL) {
		SLIST_REMOVE_HEAD(&h->hookups, entry);
		free(s);
	}
}
