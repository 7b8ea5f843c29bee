/* SPDX-License-Identifier: BSD-3-Clause */
/* test_backup.c - which port carries on for which */
#include "gpu/host/backup.h"
#include "tests/ina/switch/named.h"

#include <errno.h>

static struct ha_gpu_port_info list[HA_GPU_PORTS_MAX];
static struct ha_gpu_backup_map map;

static int ports_of(char card)
{
	if (strchr("sS", card))
		return 1;
	return strchr("dD", card) ? 2 : 4;
}

/* make_cards: "s" a card of one port, "d" of two, "q" of four; capital: its ports are down. Returns
 * how many ports. */
static int make_cards(const char *text)
{
	int n = 0;

	memset(list, 0, sizeof(list));
	for (unsigned c = 0; text[c]; c++) {
		int ports = ports_of(text[c]);

		for (int p = 1; p <= ports; p++, n++) {
			snprintf(list[n].name, sizeof(list[n].name), "card%u:%d", c, p);
			list[n].card = c;
			list[n].port = (unsigned)p;
			list[n].up = text[c] >= 'a';
		}
	}
	return n;
}

static void expect_map(int n, const int *want, int warnings)
{
	CHECK(!ha_gpu_backup_map(list, n, NULL, NULL, &map));
	for (int i = 0; i < n; i++)
		CHECK_INT(map.of[i], want[i]);
	CHECK_INT(map.warnings, warnings);
}

static void partner_is_backup(void)
{
	expect_map(make_cards("ssss"), (int[]) { 1, 0, 3, 2 }, 0);
	CHECK_INT(map.how[2], HA_GPU_BACKUP_PAIR);
	expect_map(make_cards("ss"), (int[]) { 1, 0 }, 0);
	expect_map(0, NULL, 0);
	CHECK_INT(ha_gpu_backup_map(list, HA_GPU_PORTS_MAX + 1, NULL, NULL, &map), -EINVAL);
}

static void dual_ports(void)
{
	expect_map(make_cards("dd"), (int[]) { 1, 0, 3, 2 }, 0);
	CHECK_INT(map.how[0], HA_GPU_BACKUP_PORT);
	expect_map(make_cards("q"), (int[]) { 1, 0, 3, 2 }, 0);
	/* Single ports pair among themselves, whatever lies between. */
	expect_map(make_cards("sds"), (int[]) { 3, 2, 1, 0 }, 0);
}

static void odd_count(void)
{
	expect_map(make_cards("sss"), (int[]) { 1, 0, 0 }, 1);
	CHECK_INT(map.how[2], HA_GPU_BACKUP_OTHER);
	expect_map(make_cards("s"), (int[]) { HA_GPU_NO_BACKUP }, 1);
	CHECK_INT(map.how[0], HA_GPU_BACKUP_NONE);
}

static void dead_at_the_start(void)
{
	/* The partner is down: never it; another, and the one that is down has none. */
	expect_map(make_cards("sSss"), (int[]) { 2, HA_GPU_NO_BACKUP, 3, 2 }, 1);
	expect_map(make_cards("sS"), (int[]) { HA_GPU_NO_BACKUP, HA_GPU_NO_BACKUP }, 1);
	expect_map(make_cards("SS"), (int[]) { HA_GPU_NO_BACKUP, HA_GPU_NO_BACKUP }, 0);
	/* One port of a card is down: another card rather than none. */
	make_cards("ds");
	list[1].up = false;
	expect_map(3, (int[]) { 2, HA_GPU_NO_BACKUP, 0 }, 2);
}

static void choices_are_spread(void)
{
	/* Two whose partners are down take different ones. */
	expect_map(make_cards("sSsSss"), (int[]) { 2, HA_GPU_NO_BACKUP, 0, HA_GPU_NO_BACKUP, 5, 4 },
		   2);
}

/* Whatever is up and down: a backup is up, and another; without one only if no other is up. */
static void never_down(void)
{
	static const char *const shapes[] = { "ssssss", "ddd", "sdsd", "qss", "sssss" };
	int n, others;

	for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		n = make_cards(shapes[s]);
		for (unsigned bits = 0; bits < 1u << n; bits++) {
			for (int i = 0; i < n; i++)
				list[i].up = bits >> i & 1;
			CHECK(!ha_gpu_backup_map(list, n, NULL, NULL, &map));
			for (int i = 0; i < n; i++) {
				others = __builtin_popcount(bits & ~(1u << i));
				CHECK((map.of[i] >= 0) == (list[i].up && others));
				CHECK(map.of[i] < 0 || (map.of[i] != i && list[map.of[i]].up));
			}
		}
	}
}

/* make_functions: two characters for each, card and port: functions of one port (a physical one and
 * its virtual ones) share a cable. All are up. */
static int make_functions(const char *text)
{
	int n = 0;

	memset(list, 0, sizeof(list));
	for (; text[2 * n]; n++) {
		snprintf(list[n].name, sizeof(list[n].name), "card-%.2s.%d", text + 2 * n, n);
		list[n].card = (uint64_t)text[2 * n];
		list[n].port = (unsigned)(text[2 * n + 1] - '0');
		list[n].up = true;
	}
	return n;
}

/* A function's backup was another function of the same port, without a warning: one cable took
 * both. */
static void functions_of_one_port(void)
{
	enum { NONE = HA_GPU_NO_BACKUP };

	/* with a card of one port beside it; with the other port of the card */
	expect_map(make_functions("a1a1a1b1"), (int[]) { 3, 3, 3, 0 }, 0);
	CHECK_INT(map.how[1], HA_GPU_BACKUP_PAIR);
	expect_map(make_functions("a1a1a1a2"), (int[]) { 3, 3, 3, 0 }, 0);
	CHECK_INT(map.how[1], HA_GPU_BACKUP_PORT);
	/* the physical one backs up the physical one, each virtual one one of the other port's */
	expect_map(make_functions("a1a2a1a1a2a2"), (int[]) { 1, 0, 4, 5, 2, 3 }, 0);
	expect_map(make_functions("a1a1b1b1c1d1"), (int[]) { 2, 3, 0, 1, 5, 4 }, 0);
	/* nothing but one cable: none, and a warning for each */
	expect_map(make_functions("a1a1a1"), (int[]) { NONE, NONE, NONE }, 3);
	/* an odd card falls back to another cable, never to its own */
	expect_map(make_functions("a1a1b1b1c1c1"), (int[]) { 2, 3, 0, 1, 0, 1 }, 2);
}

static int fill_order(const void *self, int port, int order[], int max)
{
	static const int to[] = { 0, 99, 3, 2 };

	memcpy(order, to, sizeof(to));
	return 4;
}

static void somebody_elses_choice(void)
{
	int n = make_cards("ssss");

	CHECK(!ha_gpu_backup_map(list, n, fill_order, NULL, &map));
	CHECK_INT(map.of[0], 3);
	CHECK_INT(map.of[3], 0);
	CHECK_INT(map.how[3], HA_GPU_BACKUP_CHOSEN);
	list[3].up = false;
	CHECK(!ha_gpu_backup_map(list, n, fill_order, NULL, &map));
	CHECK_INT(map.of[0], 2);
	n = make_functions("a1b1c1a1"); /* the first of his lies at the same cable */
	CHECK(!ha_gpu_backup_map(list, n, fill_order, NULL, &map));
	CHECK_INT(map.of[0], 2);
}

static const struct named_test tests[] = {
	{ "pairs", partner_is_backup },
	{ "dual_ports", dual_ports },
	{ "odd_count", odd_count },
	{ "dead_at_the_start", dead_at_the_start },
	{ "spread", choices_are_spread },
	{ "never_down", never_down },
	{ "functions_of_one_port", functions_of_one_port },
	{ "somebody_elses_choice", somebody_elses_choice },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
