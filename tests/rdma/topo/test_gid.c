/* SPDX-License-Identifier: BSD-3-Clause */
/* Which GID a port is addressed by. */
#include "rdma/topo/gid.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/check.h"
#include "base/config.h"
#include "tests/base/lines.h"
#include "tests/rdma/topo/tree.h"
#include "tests/rdma/verbs/fake.h"

static void ranges_are_parsed(void)
{
	static const struct {
		const char *text;
		bool inet6;
		int rc;
	} rows[] = {
		{ "", false, 0 },
		{ "10.0.0.0/8", false, 0 },
		{ "10.0.0.0/0", false, 0 },
		{ "10.0.0.0/32", false, 0 },
		{ "10.0.0.0/33", false, -EINVAL },
		{ "10.0.0.0", false, -EINVAL },
		{ "10.0.0/8", false, -EINVAL },
		{ "fd00::/8", false, -EINVAL },
		{ "fd00::/8", true, 0 },
		{ "fd00::/129", true, -EINVAL },
		{ "10.0.0.0/8", true, -EINVAL },
		{ "10.0.0.0/-1", false, -EINVAL },
		{ "10.0.0.0/8x", false, -EINVAL },
		{ "10.0.0.0/", false, -EINVAL },
		{ "/8", false, -EINVAL },
		{ "10.0.0.0/99999999999999999999", false, -EINVAL },
		{ "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/8", true, -EINVAL },
	};
	struct ha_gid_range range;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (ha_gid_range_parse(&range, rows[i].text, rows[i].inet6) != rows[i].rc) {
			fprintf(stderr, "'%s'\n", rows[i].text);
			exit(1);
		}
}

static union ibv_gid gid_of(const char *address)
{
	union ibv_gid gid = { 0 };

	if (strchr(address, ':')) {
		CHECK_INT(inet_pton(AF_INET6, address, gid.raw), 1);
	} else {
		gid.raw[10] = gid.raw[11] = 0xff;
		CHECK_INT(inet_pton(AF_INET, address, gid.raw + 12), 1);
	}
	return gid;
}

static bool is_within(const char *address, const char *range_text, bool inet6)
{
	struct ha_gid_range range;
	union ibv_gid gid = gid_of(address);

	CHECK_INT(ha_gid_range_parse(&range, range_text, inet6), 0);
	return ha_gid_in_range(&gid, &range);
}

static void membership_in_a_range(void)
{
	union ibv_gid gid;
	char text[HA_GID_TEXT_MAX];

	CHECK(is_within("10.1.2.3", "", false));
	CHECK(!is_within("10.1.2.3", "", true));
	CHECK(is_within("10.1.2.3", "10.1.0.0/16", false));
	CHECK(!is_within("10.2.2.3", "10.1.0.0/16", false));
	CHECK(is_within("10.1.2.3", "10.1.2.2/31", false));
	CHECK(!is_within("10.1.2.4", "10.1.2.2/31", false));
	CHECK(is_within("10.127.0.1", "10.64.0.0/10", false));
	CHECK(!is_within("10.128.0.1", "10.64.0.0/10", false));
	CHECK(is_within("fd00:1::1", "fd00::/8", true));
	CHECK(!is_within("fc00:1::1", "fd00::/8", true));
	CHECK(is_within("fd00::1", "fd00::1/128", true));
	CHECK(!is_within("fd00::2", "fd00::1/128", true));
	CHECK(!is_within("10.1.2.3", "::/1",
			 true)); /* IPv4 is not IPv6, also as a mapped address */
	gid = gid_of("::");
	CHECK(ha_gid_is_zero(&gid));
	gid = gid_of("fe80::");
	CHECK(ha_gid_is_zero(&gid));
	gid = gid_of("fe80::1");
	CHECK(!ha_gid_is_zero(&gid));
	CHECK(ha_gid_is_link_local(&gid));
	CHECK_TEXT(ha_gid_text(&gid, text), "fe80::1");
	gid = gid_of("10.1.2.3");
	CHECK_TEXT(ha_gid_text(&gid, text), "10.1.2.3");
}

static struct ha_gid_entry table[8];
static int filled;

static void add_entry(const char *address, int version)
{
	table[filled] = (struct ha_gid_entry) { filled, gid_of(address), version };
	filled++;
}

static int choose_entry(bool inet6, const char *range_text, int version)
{
	struct ha_gid_range range;

	CHECK_INT(ha_gid_range_parse(&range, range_text, inet6), 0);
	return ha_gid_choose(table, filled, &range, version);
}

static void best_entry_is_chosen(void)
{
	CHECK_INT(choose_entry(false, "", 2), -1);
	add_entry("::", 0);
	CHECK_INT(choose_entry(false, "", 2), -1);
	add_entry("fe80::1", 1);
	CHECK_INT(choose_entry(false, "", 2), 1);
	add_entry("fe80::1", 2);
	CHECK_INT(choose_entry(false, "", 2), 2); /* nothing better than link-local */
	add_entry("10.0.0.1", 1);
	CHECK_INT(choose_entry(false, "", 2), 3); /* the family weighs more than the version */
	add_entry("10.0.0.1", 2);
	add_entry("10.9.0.1", 2);
	add_entry("fd00::1", 2);
	CHECK_INT(choose_entry(false, "", 2), 4);
	CHECK_INT(choose_entry(false, "", 1), 3);
	CHECK_INT(choose_entry(true, "", 2), 6);
	CHECK_INT(choose_entry(false, "10.9.0.0/16", 2), 5);
	CHECK_INT(choose_entry(false, "10.9.0.0/16", 1), 5);
	CHECK_INT(choose_entry(true, "fe80::/10", 2), 2);
	CHECK_INT(choose_entry(false, "192.168.0.0/16", 2),
		  4); /* outside the range, still usable */
}

static struct fake_verbs fake;
static struct fake_device device = { .name = "mlx5_0", .nports = 1 };
static struct ibv_device **list;
static struct ibv_context *context;

static int select_with(const struct ha_config *config, struct ha_gid_entry *out)
{
	struct ha_port_attr attr;

	CHECK_INT(fake.ops.query_port(&fake.ops, context, 1, &attr), 0);
	return ha_gid_select(&fake.ops, context, "mlx5_0", 1, &attr.attr, config, out);
}

static void check_selected(const struct ha_config *config, int index)
{
	struct ha_gid_entry got;

	CHECK_INT(select_with(config, &got), 0);
	CHECK_INT(got.index, index);
}

/* Libraries without query_gid_ex: the version comes from sysfs. */
static void version_from_sysfs(struct ha_config *config, struct tree *t)
{
	struct ha_gid_entry got;

	fake.without_gid_ex = true;
	tree_file(t, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2", "RoCE v2\n");
	tree_file(t, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3", "IB/RoCE v1\n");
	CHECK_INT(select_with(config, &got), 0);
	CHECK_INT(got.index, 2);
	CHECK_INT(got.roce_version, 2);
	config->ib_roce_version = 1;
	CHECK_INT(select_with(config, &got), 0);
	CHECK_INT(got.index, 3);
	CHECK_INT(got.roce_version, 1);
	fake.without_gid_ex = false;
	config->ib_roce_version = 2;
}

/* A table of 1,024 entries, asked one by one, kept the thread that opens a path for 13 ms under
 * emulation. The other port's addresses are no choice. */
static void whole_table_in_one_call(const struct ha_config *config)
{
	int before = fake.gid_queries;

	device.nports = 2;
	device.ports[1] = fake_roce_port("10.0.0.2");
	device.ports[0].gids[3].version = 1; /* index 3 is the best of the other port alone */
	check_selected(config, 2);
	CHECK_INT(fake.gid_queries, before + 1);
	fake.without_gid_table = true;
	check_selected(config, 2);
	CHECK(fake.gid_queries > before + 2);
	fake.without_gid_table = false;
	device.ports[0] = fake_roce_port("10.0.0.1");
	device.nports = 1;
}

static void index_that_is_asked_for(struct ha_config *config)
{
	struct ha_gid_entry got;

	config->ib_gid_index = 1;
	check_selected(config, 1);
	lines_catch();
	config->ib_gid_index = 7;
	CHECK_INT(select_with(config, &got), -ENODATA);
	config->ib_gid_index = 700;
	CHECK_INT(select_with(config, &got), -ENODATA);
	CHECK_INT(lines_warnings(), 2);
	CHECK(lines_contain("mlx5_0: port 1 has no GID at NCCL_IB_GID_INDEX=700"));
	config->ib_gid_index = -1;
}

static void of_a_port(void)
{
	struct ha_gid_entry got;
	struct ha_config config;
	struct tree t;

	ha_config_defaults(&config);
	tree_make(&t);
	strcpy(config.sysfs_root, t.root);
	device.ports[0] = fake_roce_port("10.0.0.1");
	CHECK_INT(select_with(&config, &got), 0);
	CHECK_INT(got.index, 3);
	CHECK_INT(got.roce_version, 2);
	version_from_sysfs(&config, &t);
	whole_table_in_one_call(&config);
	index_that_is_asked_for(&config);

	lines_catch();
	strcpy(config.ib_addr_range, "192.168.0.0/16");
	check_selected(&config, 3);
	CHECK(lines_contain("no address in NCCL_IB_ADDR_RANGE=192.168.0.0/16; using GID 3"));
	memset(device.ports[0].gids, 0, sizeof(device.ports[0].gids));
	lines_catch();
	CHECK_INT(select_with(&config, &got), -ENODATA);
	CHECK(lines_contain("port 1 has no GID; give its network interface an address"));
	tree_remove(&t);
}

static void of_an_infiniband_port(void)
{
	struct ha_gid_entry got;
	struct ha_config config;

	ha_config_defaults(&config);
	device.ports[0] = fake_ib_port(9);
	CHECK_INT(select_with(&config, &got), 0);
	CHECK_INT(got.index, 0);
	CHECK_INT(got.roce_version, 0);
	device.ports[0].gids[1].address = "fe80:0:12::a088:c203:1"; /* carries a FLID */
	CHECK_INT(select_with(&config, &got), 0);
	CHECK_INT(got.index, 1);
	config.ib_flid_gid_index = 5;
	CHECK_INT(select_with(&config, &got), 0);
	CHECK_INT(got.index, 0);
	device.ports[0].gids[0].address = NULL;
	lines_catch();
	CHECK_INT(select_with(&config, &got), 0);
	CHECK_INT(got.index, 0);
	CHECK(lines_contain("peers reach it by its LID 9"));
}

int main(void)
{
	int n;

	ranges_are_parsed();
	membership_in_a_range();
	best_entry_is_chosen();
	fake_verbs_init(&fake, &device, 1);
	CHECK_INT(fake.ops.device_list(&fake.ops, &list, &n), 0);
	CHECK_INT(fake.ops.open(&fake.ops, list[0], &context), 0);
	of_a_port();
	of_an_infiniband_port();
	fake.ops.close(&fake.ops, context);
	fake.ops.device_list_free(&fake.ops, list);
	fake_verbs_done(&fake);
	return 0;
}
