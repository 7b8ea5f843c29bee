/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/host/backup.h"

#include "base/log.h"
#include "rdma/topo/standby.h"

#include <errno.h>
#include <string.h>

/* ---- functions of one port: a physical one and its virtual ones share a cable ---- */

static bool share_cable(const struct ha_gpu_port_info *p, int a, int b)
{
	return p[a].card == p[b].card && p[a].port == p[b].port;
}

/* The function's place among those of its port. */
static int place_at_cable(const struct ha_gpu_port_info *p, int i)
{
	int place = 0;

	for (int k = 0; k < i; k++)
		place += share_cable(p, k, i);
	return place;
}

static bool is_first_at_cable(const struct ha_gpu_port_info *p, int i)
{
	return !place_at_cable(p, i);
}

static int functions_at_cable(const struct ha_gpu_port_info *p, int n, int i)
{
	int count = 0;

	for (int k = 0; k < n; k++)
		count += share_cable(p, k, i);
	return count;
}

/* Of the functions at the cable of `first` the one that is for function i of another: the
 * physical one for the physical one where these come first, and spread. */
static int match_function(const struct ha_gpu_port_info *p, int n, int first, int i)
{
	int place = place_at_cable(p, i) % functions_at_cable(p, n, first);

	for (int k = first; k < n; k++)
		if (share_cable(p, k, first) && place_at_cable(p, k) == place)
			return k;
	return first;
}

/* ---- partners ---- */

/* Ports of the card, and how many of these come before it: by their numbers. */
static int ports_of_card(const struct ha_gpu_port_info *p, int n, int i, int *before)
{
	int count = 0;

	*before = 0;
	for (int k = 0; k < n; k++)
		if (p[k].card == p[i].card && is_first_at_cable(p, k)) {
			count++;
			*before += p[k].port < p[i].port;
		}
	return count;
}

static int other_port(const struct ha_gpu_port_info *p, int n, int i, int before)
{
	int b;

	for (int k = 0; k < n; k++)
		if (p[k].card == p[i].card && is_first_at_cable(p, k)) {
			ports_of_card(p, n, k, &b);
			if (b == (before ^ 1))
				return match_function(p, n, k, i);
		}
	return HA_GPU_NO_BACKUP;
}

/* Stands for its card among the cards of one port. */
static bool is_single_card(const struct ha_gpu_port_info *p, int n, int i)
{
	int before;

	return is_first_at_cable(p, i) && ports_of_card(p, n, i, &before) == 1;
}

/* The partner of a card of one port among such cards. */
static int pair_of(const struct ha_gpu_port_info *p, int n, int i)
{
	int place = 0, at = 0;

	for (int k = 0; !share_cable(p, k, i); k++)
		place += is_single_card(p, n, k);
	for (int k = 0; k < n; k++)
		if (is_single_card(p, n, k) && at++ == (place ^ 1))
			return match_function(p, n, k, i);
	return HA_GPU_NO_BACKUP;
}

/* The rules' partner, up or not. */
static int partner_of(const struct ha_gpu_port_info *p, int n, int i, enum ha_gpu_backup_how *how)
{
	int before;

	if (ports_of_card(p, n, i, &before) > 1) {
		*how = HA_GPU_BACKUP_PORT;
		return other_port(p, n, i, before);
	}
	*how = HA_GPU_BACKUP_PAIR;
	return pair_of(p, n, i);
}

static int choose_backup(const struct ha_gpu_port_info *p, int n, int i, ha_gpu_backup_order order,
			 const void *self, enum ha_gpu_backup_how *how)
{
	int list[HA_GPU_PORTS_MAX], count;

	if (!order)
		return partner_of(p, n, i, how);
	*how = HA_GPU_BACKUP_CHOSEN;
	count = order(self, i, list, HA_GPU_PORTS_MAX);
	for (int k = 0; k < count; k++)
		if (list[k] >= 0 && list[k] < n && !share_cable(p, list[k], i) && p[list[k]].up)
			return list[k];
	return HA_GPU_NO_BACKUP;
}

static bool is_better(const struct ha_gpu_port_info *p, const int *given, int i, int a, int b)
{
	bool a_apart = p[a].card != p[i].card, b_apart = p[b].card != p[i].card;

	return a_apart != b_apart ? a_apart : given[a] < given[b];
}

static int any_other(const struct ha_gpu_port_info *p, int n, int i, const int *given)
{
	int best = HA_GPU_NO_BACKUP;

	for (int k = 0; k < n; k++)
		if (!share_cable(p, k, i) && p[k].up &&
		    (best < 0 || is_better(p, given, i, k, best)))
			best = k;
	return best;
}

static void fall_back(const struct ha_gpu_port_info *p, int n, int i, int wanted, int *given,
		      struct ha_gpu_backup_map *map)
{
	int b = any_other(p, n, i, given);
	const char *why = wanted < 0 ? "no partner" : "a partner that is down";

	map->warnings++;
	if (b < 0) {
		HA_WARN(p[i].name,
			"has %s and no port at another cable is up: its connections have no "
			"backup; bring a second port up before the start",
			why);
		return;
	}
	HA_WARN(p[i].name, "has %s%s%s: %s is its backup instead", why, wanted < 0 ? "" : ", ",
		wanted < 0 ? "" : p[wanted].name, p[b].name);
	map->of[i] = b;
	map->how[i] = HA_GPU_BACKUP_OTHER;
	given[b]++;
}

int ha_gpu_backup_map(const struct ha_gpu_port_info *p, int n, ha_gpu_backup_order order,
		      const void *self, struct ha_gpu_backup_map *map)
{
	int given[HA_GPU_PORTS_MAX] = { 0 }, wanted[HA_GPU_PORTS_MAX];
	enum ha_gpu_backup_how how;

	if (n < 0 || n > HA_GPU_PORTS_MAX)
		return -EINVAL;
	memset(map, 0, sizeof(*map));
	map->n = n;
	for (int i = 0; i < n; i++) {
		map->of[i] = HA_GPU_NO_BACKUP;
		wanted[i] = p[i].up ? choose_backup(p, n, i, order, self, &how) : HA_GPU_NO_BACKUP;
		if (wanted[i] < 0 || !p[wanted[i]].up)
			continue;
		map->of[i] = wanted[i];
		map->how[i] = how;
		given[wanted[i]]++;
	}
	for (int i = 0; i < n; i++)
		if (p[i].up && map->of[i] < 0)
			fall_back(p, n, i, wanted[i], given, map);
	return 0;
}
