/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sender that waits for a receive while no rail is up touches none of them: the service thread
 * may be opening one anew on another device. It read the first rail's device (thread sanitizer,
 * tools.top).
 */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/transfer/one_sided.h"
#include "tests/plugin/ends.h"

#include <stdlib.h>

int main(void)
{
	struct ha_send *s = new_send();

	CHECK(s);
	s->b.is_send = true;
	s->b.nrails = 2;
	s->b.poll.always = true;
	s->b.poll.idle_limit = 100;
	CHECK(!s->b.rail[s->b.balance.first].dev);
	ha_send_not_yet(s);
	CHECK_INT(s->b.poll.idle, 1);
	free(s);
	return 0;
}
