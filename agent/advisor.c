/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/advisor.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the policies ---- */

static uint32_t by_default(struct ha_advisor *a, unsigned at)
{
	return 0;
}

static uint32_t by_file(struct ha_advisor *a, unsigned at)
{
	const struct ha_rule *rule =
		ha_rules_match(&a->fixed, a->slots->slot[at].src, a->slots->slot[at].dst);

	return rule ? rule->share : 0;
}

static struct ha_share_ports ports_of(struct ha_advisor *a, const struct ha_slot *slot)
{
	int sout = ha_ports_find(&a->ports, slot->src, a->now),
	    sup = ha_ports_find(&a->ports, slot->sup_src, a->now);

	return (struct ha_share_ports) {
		.sout = sout >= 0 ? &a->ports.port[sout] : NULL,
		.sup = sup >= 0 ? &a->ports.port[sup] : NULL,
		.sout_congestion = sout >= 0 ? &a->congestion[sout] : NULL,
		.sup_congestion = sup >= 0 ? &a->congestion[sup] : NULL,
	};
}

/* As it is now, between two looks. */
static uint32_t by_ports(struct ha_advisor *a, unsigned at)
{
	const struct ha_slot *slot = &a->slots->slot[at];
	struct ha_share_ports ports = ports_of(a, slot);

	if (!a->share[at].known)
		ha_share_begin(&a->share[at],
			       slot->inherited ? slot->value : ha_share_rest(&ports));
	return a->share[at].written;
}

static void file_look(struct ha_advisor *a)
{
	struct stat st;
	char why[128];

	if (stat(a->file, &st) ||
	    (st.st_mtim.tv_sec == a->changed.tv_sec && st.st_mtim.tv_nsec == a->changed.tv_nsec))
		return;
	a->changed = st.st_mtim;
	if (ha_rules_load(&a->fixed, a->file, why, sizeof(why)))
		HA_WARN("agent", "%s: %s; the rules before stay in force", a->file, why);
	else
		HA_INFO("agent", "%s: %zu rules", a->file, a->fixed.n);
}

static void ports_look(struct ha_advisor *a)
{
	ha_ports_look(&a->ports, a->now);
	for (unsigned i = 0; i < a->ports.n; i++)
		ha_congestion_update(&a->congestion[i], &a->ports.port[i]);
	for (unsigned i = 0; i < MPIB_HINT_MAX_ENTRIES; i++) {
		const struct ha_slot *slot = &a->slots->slot[i];
		struct ha_share_ports ports;

		if (!slot->refs) {
			a->share[i].known = false;
			continue;
		}
		ports = ports_of(a, slot);
		ha_share_step(&a->share[i], &ports);
	}
}

static void nothing_to_look_at(struct ha_advisor *a)
{
}

static const struct {
	const char *name;
	uint32_t (*advise)(struct ha_advisor *a, unsigned slot);
	void (*look)(struct ha_advisor *a);
} policies[] = {
	[HA_ADVISOR_MANUAL] = { "manual", by_default, nothing_to_look_at },
	[HA_ADVISOR_STATIC] = { "static", by_file, file_look },
	[HA_ADVISOR_CONGESTION] = { "congestion", by_ports, ports_look },
};

/* ---- hints ---- */

static uint32_t advise_share(void *user, unsigned at)
{
	struct ha_advisor *a = user;
	const struct ha_slot *slot = &a->slots->slot[at];
	const struct ha_rule *rule = ha_rules_match(&a->manual, slot->src, slot->dst);

	if (!slot->inherited && slot->refs == 1)
		a->share[at].known = false; /* a new flow in an old slot */
	return rule ? rule->share : policies[a->policy].advise(a, at);
}

static void write_all(struct ha_advisor *a)
{
	for (unsigned i = 0; i < MPIB_HINT_MAX_ENTRIES; i++) {
		const struct ha_slot *slot = &a->slots->slot[i];
		const struct ha_rule *rule;

		if (!slot->refs)
			continue;
		rule = ha_rules_match(&a->manual, slot->src, slot->dst);
		ha_slots_write(a->slots, i, rule ? rule->share : policies[a->policy].advise(a, i));
	}
}

const char *ha_advisor_source(const struct ha_advisor *a, unsigned at)
{
	const struct ha_slot *slot = &a->slots->slot[at];

	if (!slot->refs)
		return "inherited";
	if (ha_rules_match(&a->manual, slot->src, slot->dst))
		return "manual";
	if (a->policy == HA_ADVISOR_STATIC && ha_rules_match(&a->fixed, slot->src, slot->dst))
		return "static";
	return a->policy == HA_ADVISOR_CONGESTION ? "congestion" : "default";
}

const char *ha_advisor_policy_text(enum ha_advisor_policy policy)
{
	return policies[policy].name;
}

void ha_advisor_tick(struct ha_advisor *a, uint64_t now)
{
	a->now = now;
	policies[a->policy].look(a);
	write_all(a);
}

void ha_advisor_rules_changed(struct ha_advisor *a)
{
	write_all(a);
}

/* ---- set-up and end ---- */

static const char *file_open(struct ha_advisor *a, const char *file)
{
	static char wrong[512];
	struct stat st;
	char why[128];

	if (!*file || snprintf(a->file, sizeof(a->file), "%s", file) >= (int)sizeof(a->file))
		return "static: needs the name of a file";
	if (!stat(file, &st))
		a->changed = st.st_mtim;
	if (!ha_rules_load(&a->fixed, file, why, sizeof(why)))
		return NULL;
	snprintf(wrong, sizeof(wrong), "%s: %s", file, why);
	return wrong;
}

const char *ha_advisor_open(struct ha_advisor *a, struct ha_slots *slots, const char *policy,
			    const char *sysfs, uint64_t now)
{
	memset(a, 0, sizeof(*a));
	a->slots = slots;
	a->now = now;
	ha_ports_open(&a->ports, sysfs);
	if (!strncmp(policy, "static:", 7)) {
		const char *wrong = file_open(a, policy + 7);

		if (wrong)
			return wrong;
		a->policy = HA_ADVISOR_STATIC;
	} else if (!strcmp(policy, "congestion")) {
		a->policy = HA_ADVISOR_CONGESTION;
	} else if (strcmp(policy, "manual")) {
		return "a policy is manual, static:FILE or congestion";
	}
	slots->advise = advise_share;
	slots->user = a;
	return NULL;
}

void ha_advisor_close(struct ha_advisor *a)
{
	ha_rules_free(&a->manual);
	ha_rules_free(&a->fixed);
	ha_ports_close(&a->ports);
}
