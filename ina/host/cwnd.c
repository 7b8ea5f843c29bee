/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/cwnd.h"

static double least_window(const struct ina_cwnd *c)
{
	return c->max < INA_CWND_MIN ? c->max : INA_CWND_MIN;
}

void ina_cwnd_init(struct ina_cwnd *c, uint32_t max, uint64_t now)
{
	*c = (struct ina_cwnd) {
		.cwnd = max, .target = max, .max = max, .decreased_at = now, .adjusted_at = now
	};
}

void ina_cwnd_answered(struct ina_cwnd *c, bool marked)
{
	c->answered = true;
	c->congested |= marked;
}

void ina_cwnd_lost(struct ina_cwnd *c)
{
	c->congested = true;
	c->before = 0;
}

void ina_cwnd_spurious(struct ina_cwnd *c)
{
	if (c->before > c->cwnd)
		c->cwnd = c->target = c->before;
	c->before = 0;
}

void ina_cwnd_timeout(struct ina_cwnd *c, uint64_t now)
{
	if (c->cwnd > least_window(c))
		c->target = c->before = c->cwnd;
	c->cwnd = least_window(c);
	c->decreased_at = c->adjusted_at = now;
	c->count = -INA_CWND_RECOVERY;
	c->congested = false;
	c->decreases++;
}

static void decrease_window(struct ina_cwnd *c)
{
	c->alpha = (1 - INA_CWND_G) * c->alpha + INA_CWND_G;
	c->target = c->cwnd;
	c->cwnd *= 1 - c->alpha / 2;
	c->count = -INA_CWND_RECOVERY;
	c->decreases++;
}

static void increase_window(struct ina_cwnd *c)
{
	c->alpha *= 1 - INA_CWND_G;
	if (c->reached && c->count >= 0)
		c->target += c->count < INA_CWND_RECOVERY
				     ? INA_CWND_ADDITIVE
				     : INA_CWND_HYPER * (c->count - INA_CWND_RECOVERY + 1);
	if (c->target > c->max)
		c->target = c->max;
	if (c->count < 0 || c->reached)
		c->count++;
	c->cwnd = (c->target + c->cwnd) / 2;
	c->increases++;
}

void ina_cwnd_adjust(struct ina_cwnd *c, uint32_t in_flight, uint64_t interval, uint64_t now)
{
	if (in_flight + 1 > c->cwnd)
		c->reached = true;
	if (!c->answered || now - c->decreased_at < interval)
		return;
	if (c->congested) {
		decrease_window(c);
		c->decreased_at = now;
	} else {
		if (now - c->adjusted_at < interval)
			return;
		increase_window(c);
	}
	c->adjusted_at = now;
	c->answered = c->congested = c->reached = false;
	if (c->cwnd < least_window(c))
		c->cwnd = least_window(c);
}
