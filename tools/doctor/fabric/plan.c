/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The circle method: one host stays, the others go round; who is opposite is the partner. With an
 * odd number of hosts the place that stays is empty.
 */
#include "tools/doctor/fabric/plan.h"

static int places_of(int hosts)
{
	return hosts + hosts % 2;
}

int fabric_plan_rounds(int hosts)
{
	return hosts < 2 ? 0 : places_of(hosts) - 1;
}

int fabric_plan_partner(int hosts, int round, int host)
{
	int around = places_of(hosts) - 1, partner;

	if (host == around) /* the one that stays meets the one that is its own opposite */
		partner = around % 2 && round % 2 ? (round + around) / 2 : round / 2;
	else
		partner = ((round - host) % around + around) % around;
	if (partner == host)
		partner = around;
	return partner < hosts ? partner : -1;
}
