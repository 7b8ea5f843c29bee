/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "tools/job/failure.h"
#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"

#define LINGER_MS 500 /* for the news of another rank's end, before blaming oneself */

static void report_cause(const struct ha_place *place, const char *program, const char *cause)
{
	fflush(stdout);
	if (place->last_error)
		snprintf(place->last_error, HA_LAST_ERROR_SIZE, "%s", cause);
	else
		fprintf(stderr, "%s: rank %d: %s\n", program, place->rank, cause);
}

/*
 * A failure: was it another rank's? The first look lets the news of a death overtake the errors
 * that it causes; then rank 0 chooses one of several ranks that failed alike. Ranks that are not
 * forked here leave when that one has said why, not before: their launcher may end it with them.
 */
enum ha_exit ha_failure_report(struct ha_rendezvous *rendezvous, const struct ha_place *place,
			       const char *program)
{
	char cause[1024];

	snprintf(cause, sizeof(cause), "%s", ha_fault_text());
	if (rendezvous && !ha_rendezvous_linger(rendezvous, LINGER_MS))
		ha_rendezvous_offer(rendezvous);
	if (!ha_rendezvous_reports(rendezvous)) {
		if (!place->forked)
			ha_rendezvous_follow(rendezvous);
		return HA_EXIT_FOLLOWED;
	}
	if (ha_fault_text()[0])
		snprintf(cause, sizeof(cause), "%s", ha_fault_text());
	report_cause(place, program, cause);
	ha_rendezvous_abort(rendezvous);
	return HA_EXIT_FAILED;
}
