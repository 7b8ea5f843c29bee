/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of devices as NCCL_IB_HCA and NCCL_SOCKET_IFNAME write them. */
#include "base/namelist.h"

#include "base/check.h"

static bool is_in_list(const char *text, const char *name, int port)
{
	struct ha_namelist list;

	ha_namelist_parse(&list, text);
	return ha_namelist_match(&list, name, port, NULL);
}

static void names_match_as_with_nccl(void)
{
	static const struct {
		const char *list, *name;
		int port;
		bool match;
	} rows[] = {
		{ "", "mlx5_0", 1, true },
		{ "mlx5", "mlx5_3", 1, true },
		{ "mlx5_1", "mlx5_10", 1, true },
		{ "=mlx5_1", "mlx5_10", 1, false },
		{ "=mlx5_1", "mlx5_1", 2, true },
		{ "^mlx5_1", "mlx5_1", 1, false },
		{ "^mlx5_1", "mlx5_10", 1, false },
		{ "^=mlx5_1", "mlx5_10", 1, true },
		{ "^=mlx5_1", "mlx5_1", 1, false },
		{ "mlx5_0:2", "mlx5_0", 1, false },
		{ "mlx5_0:2", "mlx5_0", 2, true },
		{ "mlx5_0:2", "mlx5_0", HA_NAMELIST_ANY, true },
		{ "^mlx5_0:2", "mlx5_0", 1, true },
		{ "^mlx5_0:2", "mlx5_0", 2, false },
		{ "mlx5_0:1,mlx5_1:2", "mlx5_1", 2, true },
		{ "mlx5_0,,mlx5_1,", "mlx5_1", 1, true },
		{ "bnxt", "mlx5_0", 1, false },
		{ "=", "mlx5_0", 1, true },
		{ "^docker,lo", "lo", -1, false },
		{ "^docker,lo", "eth0", -1, true },
		{ "=eth0", "eth", -1, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (is_in_list(rows[i].list, rows[i].name, rows[i].port) != rows[i].match) {
			fprintf(stderr, "'%s' against %s:%d\n", rows[i].list, rows[i].name,
				rows[i].port);
			exit(1);
		}
}

static void numbers_are_kept(void)
{
	const struct ha_namelist_item *item;
	struct ha_namelist list;

	CHECK_INT(ha_namelist_parse(&list, "mlx5_0:1:2:3,mlx5_1::5,mlx5_2:::6,mlx5_3:4:"), 0);
	CHECK_INT(list.n, 4);
	CHECK_INT(list.items[0].port, 1);
	CHECK_INT(list.items[0].rail, 2);
	CHECK_INT(list.items[0].plane, 3);
	CHECK_INT(list.items[1].port, HA_NAMELIST_ANY);
	CHECK_INT(list.items[1].rail, 5);
	CHECK_INT(list.items[1].plane, HA_NAMELIST_ANY);
	CHECK_INT(list.items[2].plane, 6);
	CHECK_INT(list.items[3].port, 4);
	CHECK(ha_namelist_match(&list, "mlx5_1", 9, &item));
	CHECK(item == &list.items[1]);
	CHECK(!ha_namelist_match(&list, "mlx5_4", 9, &item));
	CHECK(!item);
}

static void nonsense_is_counted_and_left_out(void)
{
	struct ha_namelist list;
	char text[4096] = "";

	CHECK_INT(ha_namelist_parse(&list,
				    "mlx5_0:x,mlx5_1:1,:2,mlx5_2:-1,mlx5_3:1:1:1:1,mlx5_4:99999"),
		  5);
	CHECK_INT(list.n, 1);
	CHECK_TEXT(list.items[0].name, "mlx5_1");
	CHECK_INT(ha_namelist_parse(&list, NULL), 0);
	CHECK_INT(list.n, 0);
	for (int i = 0; i < HA_NAMELIST_ITEMS_MAX + 3; i++)
		sprintf(text + strlen(text), "d%d,", i);
	CHECK_INT(ha_namelist_parse(&list, text), 3);
	CHECK_INT(list.n, HA_NAMELIST_ITEMS_MAX);
	memset(text, 'n', HA_NAMELIST_NAME_MAX);
	text[HA_NAMELIST_NAME_MAX] = 0;
	CHECK_INT(ha_namelist_parse(&list, text), 1);
	CHECK_INT(ha_namelist_parse(&list, text + 1), 0);
}

int main(void)
{
	names_match_as_with_nccl();
	numbers_are_kept();
	nonsense_is_counted_and_left_out();
	return 0;
}
