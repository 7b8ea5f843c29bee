/* SPDX-License-Identifier: BSD-3-Clause */
/* test_settings.c - nonsense is an error that names the variable, never a silent default */
#include "base/log.h"
#include "gpu/host/settings.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <unistd.h>

static const char *given[8][2];
static char said[1024];

static const char *get_given(void *user, const char *name)
{
	for (unsigned i = 0; i < 8 && given[i][0]; i++)
		if (!strcmp(given[i][0], name))
			return given[i][1];
	return NULL;
}

static int load_settings(struct ha_gpu_settings *s, const char *name, const char *text,
			 const char *name2, const char *text2)
{
	char path[] = "/tmp/hawser-said-XXXXXX";
	int fd = mkstemp(path), old = dup(2), r;
	ssize_t n;

	memset(given, 0, sizeof(given));
	given[0][0] = name;
	given[0][1] = text;
	given[1][0] = name2;
	given[1][1] = text2;
	CHECK(fd >= 0 && old >= 0 && dup2(fd, 2) == 2);
	r = ha_gpu_settings_load(s, get_given, NULL);
	dup2(old, 2);
	n = pread(fd, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = 0;
	close(fd);
	close(old);
	unlink(path);
	return r;
}

static void check_defaults(void)
{
	struct ha_gpu_settings s;
	struct ha_gpu_agent_config a;

	CHECK(!load_settings(&s, NULL, NULL, NULL, NULL));
	CHECK_TEXT(said, "");
	ha_gpu_settings_agent(&s, &a);
	CHECK_INT(a.check_ns, 10000000);
	CHECK_INT(a.silent_checks, 200);
	CHECK_INT(a.recovery_ns, 100000000);
	CHECK_INT(a.failback, 1);
}

static void values_are_taken(void)
{
	struct ha_gpu_settings s;

	CHECK(!load_settings(&s, "HA_GPU_QP_DEPTH", "256", "HA_GPU_RECOVERY_MS", "250"));
	CHECK_INT(s.qp_depth, 256);
	CHECK_INT(s.recovery_ms, 250);
}

static void check_refused(const char *name, const char *text)
{
	struct ha_gpu_settings s;

	CHECK_INT(load_settings(&s, name, text, NULL, NULL), -EINVAL);
	CHECK(strstr(said, name));
	CHECK(strchr(said, '\n') == said + strlen(said) - 1); /* one line */
}

static void bad_values_are_refused(void)
{
	check_refused("HA_GPU_CHECK_MS", "0");
	check_refused("HA_GPU_CHECK_MS", "ten");
	check_refused("HA_GPU_CHECK_MS", "10ms");
	check_refused("HA_GPU_CHECK_MS", "-1");
	check_refused("HA_GPU_CHECK_MS", "");
	check_refused("HA_GPU_CHECK_MS", "99999999999999999999999");
	check_refused("HA_GPU_SILENT_CHECKS", "1");
	check_refused("HA_GPU_RECOVERY_MS", "0");
	check_refused("HA_GPU_NO_PATH_MS", "1");
	check_refused("HA_GPU_QP_DEPTH", "1000");
	check_refused("HA_GPU_QP_DEPTH", "65536");
	check_refused("HA_GPU_PROOF_EVERY", "32");
	check_refused("HA_GPU_ENABLE_BACKUP", "yes");
}

static void between_settings(void)
{
	struct ha_gpu_settings s;

	/* the default proof is more than a quarter of it */
	CHECK_INT(load_settings(&s, "HA_GPU_QP_DEPTH", "128", NULL, NULL), -EINVAL);
	CHECK(strstr(said, "HA_GPU_PROOF_EVERY"));
	CHECK(!load_settings(&s, "HA_GPU_QP_DEPTH", "128", "HA_GPU_PROOF_EVERY", "0"));
	/* Shorter than the NIC repeats: 4.096 us x 2^14 x 8 = 536 ms. */
	CHECK_INT(load_settings(&s, "HA_GPU_SILENT_CHECKS", "53", NULL, NULL), -EINVAL);
	CHECK(strstr(said, "window"));
	CHECK(!load_settings(&s, "HA_GPU_SILENT_CHECKS", "54", NULL, NULL));
	CHECK(!load_settings(&s, "HA_GPU_SILENT_CHECKS", "5", "HA_GPU_QP_TIMEOUT", "8"));
}

/* Windows of microseconds were counted in whole milliseconds of one try, which for all below 2^8 is
 * none: any silence seemed long enough. */
static void short_windows(void)
{
	struct ha_gpu_settings s;

	ha_gpu_settings_defaults(&s);
	s.check_ms = 1;
	s.silent_checks = 4;
	s.qp_timeout = 7; /* 4.096 us x 2^7 x 8 = 4.19 ms */
	CHECK_INT(ha_gpu_settings_check(&s), -EINVAL);
	s.silent_checks = 5;
	CHECK_INT(ha_gpu_settings_check(&s), 0);
	s.qp_timeout = 8; /* 8.39 ms */
	s.silent_checks = 8;
	CHECK_INT(ha_gpu_settings_check(&s), -EINVAL);
	s.silent_checks = 9;
	CHECK_INT(ha_gpu_settings_check(&s), 0);
}

/* The table in docs/gpu.md is the one that the settings print. */
static void page_has_table(void)
{
	static char table[16384], page[65536];
	FILE *f = fmemopen(table, sizeof(table), "w"), *doc = fopen(SOURCE_DIR "/docs/gpu.md", "r");

	CHECK(f && doc);
	ha_gpu_settings_print_markdown(f);
	fclose(f);
	CHECK(fread(page, 1, sizeof(page) - 1, doc) > 0);
	fclose(doc);
	CHECK(strstr(page, table));
}

/* A misspelt name did nothing, silently. */
static void unknown_names(void)
{
	char path[] = "/tmp/hawser-said-XXXXXX";
	int fd = mkstemp(path), old = dup(2);
	struct ha_gpu_settings s;
	ssize_t n;

	setenv("HA_GPU_QP_DEPHT", "128", 1);
	setenv("HA_GPU_QP_TIMEOUT", "13", 1);
	CHECK(fd >= 0 && old >= 0 && dup2(fd, 2) == 2);
	ha_gpu_settings_load_env(&s);
	dup2(old, 2);
	n = pread(fd, said, sizeof(said) - 1, 0);
	said[n > 0 ? n : 0] = 0;
	close(fd);
	unlink(path);
	CHECK(strstr(said, "HA_GPU_QP_DEPHT is set, but there is no such variable; did you mean "
			   "HA_GPU_QP_DEPTH"));
	CHECK(!strstr(said, "HA_GPU_QP_TIMEOUT is set"));
}

static const struct named_test tests[] = {
	{ "defaults", check_defaults },         { "taken", values_are_taken },
	{ "nonsense", bad_values_are_refused }, { "between_settings", between_settings },
	{ "short_windows", short_windows },     { "documented", page_has_table },
	{ "unknown_names", unknown_names },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
