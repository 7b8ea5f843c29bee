/* SPDX-License-Identifier: BSD-3-Clause */
/* test_order.c - of many that are added and taken out at random the earliest is first, always */
#include "base/check.h"
#include "base/rng.h"
#include "plugin/channel/order.h"

#include <stdbool.h>

#define NODES 200
#define STEPS 50000

static struct ha_order_node node[NODES], *first;
static bool is_in[NODES];

static void check_first(void)
{
	uint64_t earliest = UINT64_MAX;
	bool any = false;

	for (unsigned i = 0; i < NODES; i++)
		if (is_in[i]) {
			any = true;
			earliest = node[i].at < earliest ? node[i].at : earliest;
		}
	CHECK(any == (first != NULL));
	if (first) {
		CHECK(first->at == earliest && first->link == &first && !first->next);
		CHECK(is_in[first - node]);
	}
}

static void change_one(unsigned i, uint64_t at)
{
	if (is_in[i])
		ha_order_remove(&first, &node[i]);
	else
		ha_order_add(&first, &node[i], at);
	is_in[i] = !is_in[i];
}

int main(void)
{
	struct sr_rng rng = { .state = 1 };
	uint64_t last = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		unsigned most = 1 + i * 4 / STEPS * 300; /* all the same time first, then of many */

		change_one((unsigned)(sr_rng_next(&rng) % NODES), sr_rng_next(&rng) % most);
		check_first();
	}
	while (first) { /* in order */
		CHECK(first->at >= last);
		last = first->at;
		change_one((unsigned)(first - node), 0);
		check_first();
	}
	return 0;
}
