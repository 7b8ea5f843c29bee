/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switchd/faults.h"

#include "ina/switch/switchd/dice.h"

#include <string.h>

void ina_faults_open(struct ina_faults_state *s, const struct ina_faults_config *config,
		     uint64_t thread)
{
	memset(s, 0, sizeof(*s));
	s->config = config;
	s->dice = (config->seed + thread * 0x9e3779b97f4a7c15ull) | 1;
}

void ina_faults_close(struct ina_faults_state *s)
{
	while (s->held)
		rte_pktmbuf_free(s->packet[--s->held].m);
}

/* False: there is no room, or m is NULL. */
static bool hold_packet(struct ina_faults_state *s, struct rte_mbuf *m, int out, uint64_t now)
{
	if (!m || s->held == INA_FAULTS_HELD) {
		rte_pktmbuf_free(m);
		return false;
	}
	s->packet[s->held++] = (struct ina_faults_packet) {
		m, now + 1000 + ina_dice_roll(&s->dice) % s->config->delay_ns, out
	};
	return true;
}

bool ina_faults_pass(struct ina_faults_state *s, struct rte_mbuf *m, int out, uint64_t now)
{
	const struct ina_faults_config *c = s->config;

	if (ina_dice_below(&s->dice, c->loss)) {
		s->lost++;
		rte_pktmbuf_free(m);
		return false;
	}
	if (ina_dice_below(&s->dice, c->duplicate))
		s->repeated +=
			hold_packet(s, rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX), out, now);
	if (ina_dice_below(&s->dice, c->reorder)) {
		s->reordered++;
		if (!hold_packet(s, m, out, now))
			s->lost++;
		return false;
	}
	return true;
}

struct rte_mbuf *ina_faults_due(struct ina_faults_state *s, uint64_t now, int *out)
{
	for (unsigned i = 0; i < s->held; i++) {
		struct rte_mbuf *m = s->packet[i].m;

		if (s->packet[i].due > now)
			continue;
		*out = s->packet[i].out;
		s->packet[i] = s->packet[--s->held];
		return m;
	}
	return NULL;
}
