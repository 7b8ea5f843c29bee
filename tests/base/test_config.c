/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration table: defaults, ranges, nonsense, rules between variables, names, and the
 * generated page. */
#include "base/config.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/names.h"
#include "tests/base/lines.h"

/* "NAME=value" strings that end with NULL. */
static const char *list_get(void *user, const char *name)
{
	size_t len = strlen(name);

	for (const char *const *pair = user; *pair; pair++)
		if (!strncmp(*pair, name, len) && (*pair)[len] == '=')
			return *pair + len + 1;
	return NULL;
}

#define LOAD(config, ...) \
	ha_config_load(config, list_get, (void *)(const char *[]) { __VA_ARGS__, NULL })

static void defaults_are_the_documented_ones(void)
{
	struct ha_config c;

	lines_catch();
	CHECK_INT(LOAD(&c, "OTHER=1"), 0);
	CHECK_INT(lines_warnings(), 0);
	CHECK_INT(c.enable_backup, 1);
	CHECK_INT(c.heartbeat_ms, 200);
	CHECK_INT(c.rto_ms, 1000);
	CHECK_INT(c.max_retries, 10);
	CHECK_INT(c.enable_failback, 0);
	CHECK_INT(c.debug, 0);
	CHECK_INT(c.use_progress_thread, 1);
	CHECK_INT(c.poll_batch, 32);
	CHECK_INT(c.test_max_poll, 32);
	CHECK_INT(c.idle_spin_threshold, 1000);
	CHECK_INT(c.poll_standby_interval, 100);
	CHECK_INT(ha_config_timeout(&c), 14);
	CHECK_INT(c.qp_retry_cnt, 7);
	CHECK_INT(c.expected_channels, 16);
	CHECK_INT(c.wr_per_conn, 64);
	CHECK_INT(c.max_recvs, 8);
	CHECK_INT(c.mpib_mode, 0);
	CHECK_INT(c.mpib_sout_qp, 2);
	CHECK_INT(c.mpib_sup_qp, 4);
	CHECK_INT(c.mpib_cts_signal_interval, 128);
	CHECK_INT(c.mpib_island_prefix_len, 24);
	CHECK_TEXT(c.verbs, "system");
	CHECK_TEXT(c.ib_hca, "");
	CHECK_INT(c.source[HA_CFG_rto_ms], HA_CONFIG_DEFAULT);
	/* 4.096 us x 2^14 x 7 = 0.4698 s, the 0.47 s that are documented. */
	CHECK_INT(ha_config_window_ns(&c), 469762048);
}

static void values_are_taken(void)
{
	struct ha_config c;

	CHECK_INT(LOAD(&c, "HA_NCCL_POLL_BATCH=0x10", "HA_NCCL_USE_PROGRESS_THREAD=off",
		       "NCCL_IB_ADDR_FAMILY=af_inet6", "NCCL_IB_AR_THRESHOLD=64K",
		       "NCCL_IB_HCA==mlx5_1:1", "NCCL_IB_TC=106 ", "HA_NCCL_VERBS="),
		  0);
	CHECK_INT(c.poll_batch, 16);
	CHECK_INT(c.use_progress_thread, 0);
	CHECK_INT(c.ib_addr_family, HA_GID_INET6);
	CHECK_INT(c.ib_ar_threshold, 65536);
	CHECK_TEXT(c.ib_hca, "=mlx5_1:1");
	CHECK_INT(c.ib_tc, 106);
	CHECK_TEXT(c.verbs, "system"); /* empty is not set */
	CHECK(ha_config_is_set(&c, HA_CFG_poll_batch));
	CHECK(!ha_config_is_set(&c, HA_CFG_verbs));
}

/* What NCCL's own transport calls failover and recovery, unless hawser's own variables are set. */
static void nccl_resiliency_is_mapped(void)
{
	struct ha_config c;

	lines_catch();
	CHECK_INT(LOAD(&c, "NCCL_IB_RESILIENCY_PORT_FAILOVER=0",
		       "NCCL_IB_RESILIENCY_PORT_RECOVERY=1"),
		  0);
	CHECK(!c.enable_backup && c.enable_failback);
	CHECK_INT(c.source[HA_CFG_enable_backup], HA_CONFIG_ADJUSTED);
	CHECK(lines_contain("NCCL_IB_RESILIENCY_PORT_FAILOVER=0: no connection has a standby"));
	lines_catch();
	CHECK_INT(LOAD(&c, "NCCL_IB_RESILIENCY_PORT_FAILOVER=0", "HA_NCCL_ENABLE_BACKUP=1",
		       "NCCL_IB_RESILIENCY_PORT_RECOVERY=1", "HA_NCCL_ENABLE_FAILBACK=0"),
		  0);
	CHECK(c.enable_backup && !c.enable_failback);
	CHECK_INT(LOAD(&c, "NCCL_IB_RESILIENCY_PORT_FAILOVER=1",
		       "NCCL_IB_RESILIENCY_PORT_RECOVERY=0"),
		  0);
	CHECK(c.enable_backup && !c.enable_failback);
	CHECK_INT(lines_warnings(), 0);
}

static void sizes_take_suffixes(void)
{
	static const struct {
		const char *pair;
		uint64_t bytes;
	} good[] = { { "NCCL_IB_AR_THRESHOLD=0", 0 },
		     { "NCCL_IB_AR_THRESHOLD=1k", 1024 },
		     { "NCCL_IB_AR_THRESHOLD=2MB", 2 << 20 },
		     { "NCCL_IB_AR_THRESHOLD=1GiB", 1 << 30 },
		     { "NCCL_IB_AR_THRESHOLD=1024G", UINT64_C(1) << 40 } };
	static const char *const bad[] = { "NCCL_IB_AR_THRESHOLD=1T",
					   "NCCL_IB_AR_THRESHOLD=-1",
					   "NCCL_IB_AR_THRESHOLD=1025G",
					   "NCCL_IB_AR_THRESHOLD=1 K x",
					   "NCCL_IB_AR_THRESHOLD=9223372036854775807G",
					   "NCCL_IB_AR_THRESHOLD=K" };
	struct ha_config c;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_INT(LOAD(&c, good[i].pair), 0);
		CHECK_INT(c.ib_ar_threshold, good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_INT(LOAD(&c, bad[i]), 1);
		CHECK_INT(c.ib_ar_threshold, 8192);
	}
}

static void nonsense_is_one_line_and_the_default(void)
{
	static const char *const bad[] = {
		"HA_NCCL_POLL_BATCH=abc",  "HA_NCCL_POLL_BATCH=0",
		"HA_NCCL_POLL_BATCH=257",  "HA_NCCL_POLL_BATCH=32 completions",
		"HA_NCCL_POLL_BATCH=-32",  "HA_NCCL_POLL_BATCH=99999999999999999999",
		"HA_NCCL_POLL_BATCH=32.5", "HA_NCCL_POLL_BATCH= "
	};
	char long_text[HA_CONFIG_TEXT_MAX + 32];
	struct ha_config c;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		lines_catch();
		CHECK_INT(LOAD(&c, bad[i]), 1);
		CHECK_INT(c.poll_batch, 32);
		CHECK_INT(c.source[HA_CFG_poll_batch], HA_CONFIG_REJECTED);
		CHECK_INT(lines_warnings(), 1);
		CHECK(lines_contain("HA_NCCL_POLL_BATCH='"));
		CHECK(lines_contain("is not a whole number from 1 to 256; using the default '32'"));
	}
	lines_catch();
	CHECK_INT(LOAD(&c, "NCCL_IB_ADDR_FAMILY=ipx"), 1);
	CHECK(lines_contain("NCCL_IB_ADDR_FAMILY='ipx' is not one of AF_INET|AF_INET6; using the "
			    "default 'AF_INET'"));
	CHECK_INT(LOAD(&c, "NCCL_IB_DISABLE=maybe"), 1);
	CHECK(lines_contain("NCCL_IB_DISABLE='maybe' is not 0 or 1; using the default '0'"));
	snprintf(long_text, sizeof(long_text), "NCCL_IB_HCA=%0*d", HA_CONFIG_TEXT_MAX, 7);
	CHECK_INT(LOAD(&c, long_text), 1);
	CHECK_TEXT(c.ib_hca, "");
}

static void every_bound_is_accepted_and_no_more(void)
{
	static const struct {
		const char *name;
		long min, max;
	} rows[] = {
#define ROW_BOOL(name, min, max)
#define ROW_STR(name, min, max)
#define ROW_ENUM(name, min, max)
#define ROW_SIZE(name, min, max)
#define ROW_INT(name, min, max) { name, min, max },
#define X(type, field, name, def, min, max, ...) ROW_##type(name, min, max)
#include "base/config_table.h"
#undef X
	};
	char pair[128];
	struct ha_config c;

	lines_catch();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const long good[] = { rows[i].min, rows[i].max },
			   bad[] = { rows[i].min - 1, rows[i].max + 1 };

		for (int k = 0; k < 2; k++) {
			snprintf(pair, sizeof(pair), "%s=%ld", rows[i].name, good[k]);
			CHECK_INT(LOAD(&c, pair), 0);
			snprintf(pair, sizeof(pair), "%s=%ld", rows[i].name, bad[k]);
			CHECK_INT(LOAD(&c, pair), 1);
		}
	}
}

static void the_rto_exceeds_twice_the_window(void)
{
	struct ha_config c;

	lines_catch();
	LOAD(&c, "HA_NCCL_RTO_MS=500");
	CHECK_INT(c.rto_ms, 2 * 469763 / 1000 + 1);
	CHECK_INT(c.source[HA_CFG_rto_ms], HA_CONFIG_ADJUSTED);
	CHECK(lines_contain(
		"HA_NCCL_RTO_MS=500 does not exceed twice the hardware's window of 469 ms"));
	lines_catch();
	LOAD(&c, "HA_NCCL_RTO_MS=500", "HA_NCCL_QP_TIMEOUT=12");
	CHECK_INT(c.rto_ms, 500);
	CHECK(!lines_contain("does not exceed"));
	/* the largest window: no overflow */
	LOAD(&c, "HA_NCCL_FORCE_IB_TIMEOUT=31", "HA_NCCL_QP_RETRY_CNT=7");
	CHECK_INT(c.rto_ms, 2 * UINT64_C(61572651) + 1);
	LOAD(&c, "HA_NCCL_QP_RETRY_CNT=0");
	CHECK_INT(ha_config_window_ns(&c), 67108864);
}

/* Also for a configuration that nobody loaded, and for every window. */
static void the_soft_timeout_in_force_exceeds_twice_the_window(void)
{
	struct ha_config c;

	ha_config_defaults(&c);
	CHECK_INT(ha_config_rto_ns(&c), 1000000000);
	c.rto_ms = 500;
	CHECK_INT(ha_config_rto_ns(&c), 940000000);
	for (int timeout = 1; timeout <= 31; timeout++)
		for (int retries = 0; retries <= 7; retries++) {
			ha_config_defaults(&c);
			c.force_ib_timeout = timeout;
			c.qp_retry_cnt = retries;
			CHECK(ha_config_rto_ns(&c) > 2 * ha_config_window_ns(&c));
			CHECK(ha_config_rto_ns(&c) >= UINT64_C(1000000000));
		}
}

static void the_forced_timeout_wins(void)
{
	struct ha_config c;

	LOAD(&c, "HA_NCCL_QP_TIMEOUT=16");
	CHECK_INT(ha_config_timeout(&c), 16);
	lines_catch();
	LOAD(&c, "HA_NCCL_QP_TIMEOUT=16", "HA_NCCL_FORCE_IB_TIMEOUT=13");
	CHECK_INT(ha_config_timeout(&c), 13);
	CHECK(lines_contain("HA_NCCL_FORCE_IB_TIMEOUT=13 wins over HA_NCCL_QP_TIMEOUT=16"));
	LOAD(&c, "HA_NCCL_QP_TIMEOUT=16", "HA_NCCL_FORCE_IB_TIMEOUT=99");
	CHECK_INT(ha_config_timeout(&c), 16); /* nonsense forces nothing */
}

static const char *find_nearest(const char *name)
{
	const char *known[HA_CONFIG_COUNT];

	for (int i = 0; i < HA_CONFIG_COUNT; i++)
		known[i] = ha_config_name((enum ha_config_id)i);
	return ha_name_nearest(name, known, HA_CONFIG_COUNT);
}

static void nearest_name_is_found(void)
{
	CHECK_TEXT(find_nearest("HA_NCCL_RTO"), "HA_NCCL_RTO_MS");
	CHECK_TEXT(find_nearest("HA_NCCL_TEST_MAXPOLL"), "HA_NCCL_TEST_MAX_POLL");
	CHECK(!find_nearest("HA_NCCL_NOTHING_LIKE_IT"));
	CHECK(!find_nearest("HA_NCCL_"
			    "A_NAME_THAT_IS_LONGER_THAN_ANY_VARIABLE_COULD_REASONABLY_BE_IN_A_"
			    "TABLE_LIKE_OURS"));
}

/* As `ha config` prints it. */
static void check_printed(const struct ha_config *c)
{
	FILE *out = tmpfile();
	char text[65536];

	CHECK(out);
	ha_config_print(c, out);
	rewind(out);
	text[fread(text, 1, sizeof(text) - 1, out)] = 0;
	fclose(out);
	CHECK(strstr(text, "HA_NCCL_QP_RETRY_CNT             5          environment\n"));
	CHECK(strstr(text, "HA_NCCL_VERBS                    system     default\n"));
}

static void misspelt_names_are_reported(void)
{
	struct ha_config c;

	setenv("HA_NCCL_POL_BATCH", "8", 1);
	setenv("HA_NCCL_NOTHING_LIKE_IT", "8", 1);
	setenv("HA_NCCL_FOO", "8", 1); /* as far from HA_NCCL_ACK as can be */
	setenv("MPIB_MODUS", "1", 1);
	setenv("NETCCL_BAKEND", "/run/x", 1);
	setenv("NETCCL_BIND_ADDR", "10.0.0.1", 1);
	setenv("HA_NCCL_QP_RETRY_CNT", "5", 1);
	setenv("NCCL_IB_TIMEOUT", "20", 1);
	setenv("NCCL_IB_FOO", "1", 1);
	setenv("NCCL_IB_GID_INDX", "3", 1);
	setenv("NCCL_NET_FOO", "1", 1); /* NCCL's core may know it */
	lines_catch();
	setenv("NCCL_DEBUG", "INFO", 1);
	CHECK_INT(ha_config_load_env(&c), 0);
	CHECK_INT(c.qp_retry_cnt, 5);
	CHECK(lines_contain("HA_NCCL_POL_BATCH is set, but there is no such variable; did you mean "
			    "HA_NCCL_POLL_BATCH"));
	CHECK(lines_contain(
		"HA_NCCL_NOTHING_LIKE_IT is set, but there is no such variable; `ha config`"));
	CHECK(lines_contain("HA_NCCL_FOO is set, but there is no such variable; `ha config`"));
	CHECK(lines_contain(
		"MPIB_MODUS is set, but there is no such variable; did you mean MPIB_MODE"));
	CHECK(lines_contain("NETCCL_BAKEND is set, but there is no such variable; did you mean "
			    "NETCCL_BACKEND"));
	CHECK(!lines_contain("NETCCL_BIND_ADDR is set"));
	CHECK(!lines_contain("HA_NCCL_QP_RETRY_CNT is set"));
	CHECK(lines_contain("NCCL_IB_TIMEOUT=20 is set, but not read: HA_NCCL_FORCE_IB_TIMEOUT"));
	CHECK(lines_contain("NCCL_IB_FOO is set, but hawser "));
	CHECK(lines_contain("NCCL_IB_GID_INDX is set, but"));
	CHECK(lines_contain("no effect there; did you mean NCCL_IB_GID_INDEX; `ha config"));
	CHECK_INT(lines_count("does not know it"), 2);
	CHECK(!lines_contain("NCCL_NET_FOO"));
	/* once, as a warning, and not where it says what holds in any case */
	lines_catch();
	setenv("NCCL_DEBUG", "WARN", 1);
	setenv("NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS", "1", 1);
	setenv("NCCL_IB_RETRY_CNT", "3", 1);
	ha_config_load_env(&c);
	CHECK(!lines_contain("NCCL_IB_TIMEOUT"));
	CHECK(!lines_contain("NCCL_IB_FOO"));
	CHECK(!lines_contain("NCCL_IB_PREPOST"));
	CHECK(lines_contain("NCCL_IB_RETRY_CNT=3 is set, but not read: HA_NCCL_QP_RETRY_CNT"));
	check_printed(&c);
}

/* docs/configuration.md is what `ha config --markdown` prints. */
static void the_page_is_current(const char *path)
{
	FILE *page = fopen(path, "r"), *out = tmpfile();
	int line = 1, a, b;

	CHECK(page);
	CHECK(out);
	ha_config_print_markdown(out);
	rewind(out);
	do {
		a = fgetc(page);
		b = fgetc(out);
		line += a == '\n';
		if (a != b) {
			fprintf(stderr,
				"%s, line %d: out of date; run: ha config --markdown > "
				"docs/configuration.md\n",
				path, line);
			exit(1);
		}
	} while (a != EOF);
	fclose(page);
	fclose(out);
}

/* Anybody can make /tmp/mpib: the agent is looked for in a directory that only root can have made,
 * when there is one. */
static void the_agents_directory_is_not_squatted(void)
{
	char folder[] = "/tmp/hawser-config-XXXXXX", link[64];
	struct ha_config c;
	bool run = ha_config_folder_trusted("/run/mpib");

	unsetenv("HA_NCCL_AGENT_SOCKET");
	unsetenv("HA_NCCL_AGENT_HINTS");
	ha_config_load_env(&c);
	CHECK_TEXT(c.agent_socket, run ? "/run/mpib/agent.sock" : "/tmp/mpib/agent.sock");
	CHECK_TEXT(c.agent_hints, run ? "/run/mpib/hints" : "/tmp/mpib/hints");
	setenv("HA_NCCL_AGENT_HINTS", "/elsewhere/hints", 1);
	ha_config_load_env(&c);
	CHECK_TEXT(c.agent_hints, "/elsewhere/hints");
	CHECK_TEXT(c.agent_socket, run ? "/run/mpib/agent.sock" : "/tmp/mpib/agent.sock");

	CHECK(mkdtemp(folder));
	snprintf(link, sizeof(link), "%s.link", folder);
	CHECK(ha_config_folder_trusted(folder));
	CHECK(!symlink(folder, link));
	CHECK(!ha_config_folder_trusted(link));
	CHECK(!unlink(link));
	CHECK(!chmod(folder, 0777));
	CHECK(!ha_config_folder_trusted(folder));
	CHECK(!chmod(folder, 0700));
	if (!geteuid()) {
		CHECK(!chown(folder, 12345, 0));
		CHECK(!ha_config_folder_trusted(folder));
	}
	CHECK(!rmdir(folder));
	CHECK(!ha_config_folder_trusted(folder));
}

int main(int argc, char **argv)
{
	CHECK_INT(argc, 2);
	defaults_are_the_documented_ones();
	values_are_taken();
	nccl_resiliency_is_mapped();
	sizes_take_suffixes();
	nonsense_is_one_line_and_the_default();
	every_bound_is_accepted_and_no_more();
	the_rto_exceeds_twice_the_window();
	the_soft_timeout_in_force_exceeds_twice_the_window();
	the_forced_timeout_wins();
	nearest_name_is_found();
	misspelt_names_are_reported();
	the_page_is_current(argv[1]);
	the_agents_directory_is_not_squatted();
	return 0;
}
