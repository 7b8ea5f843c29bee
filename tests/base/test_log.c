/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lines reach NCCL's logger, which reach stderr, and what a line looks like. */
#include "base/log.h"

#include <stdarg.h>
#include <unistd.h>

#include "base/check.h"

static char sunk[2048];
static int sunk_level, sunk_count;
static unsigned long sunk_flags;

static __attribute__((format(printf, 5, 6))) void record_line(int level, unsigned long flags,
							      const char *file, int line,
							      const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sunk, sizeof(sunk), fmt, ap);
	va_end(ap);
	sunk_level = level;
	sunk_flags = flags;
	sunk_count++;
}

static int evaluated;

static int count_evaluation(void)
{
	return ++evaluated;
}

static int stderr_pipe[2], stderr_saved;

static void stderr_catch(void)
{
	CHECK(!pipe(stderr_pipe));
	stderr_saved = dup(STDERR_FILENO);
	dup2(stderr_pipe[1], STDERR_FILENO);
	close(stderr_pipe[1]);
}

/* What was written since stderr_catch. */
static const char *stderr_caught(void)
{
	static char text[8192];
	ssize_t n, used = 0;

	dup2(stderr_saved, STDERR_FILENO);
	close(stderr_saved);
	while ((n = read(stderr_pipe[0], text + used, sizeof(text) - 1 - (size_t)used)) > 0)
		used += n;
	close(stderr_pipe[0]);
	text[used] = 0;
	return text;
}

static void a_hosted_line_goes_to_the_host(void)
{
	ha_log_set_sink(record_line);
	ha_log_configure("INFO", NULL, 0);
	HA_INFO("mlx5_0", "up at %d", 7);
	CHECK_TEXT(sunk, "NET/HA: mlx5_0: up at 7");
	CHECK_INT(sunk_level, HA_LOG_INFO);
	CHECK(sunk_flags & HA_LOG_INIT);
	CHECK(sunk_flags & HA_LOG_NET);
	HA_WARN(NULL, "%s", "100% true");
	CHECK_TEXT(sunk, "NET/HA: 100% true");
	CHECK_INT(sunk_level, HA_LOG_WARN);
}

static void a_disabled_line_evaluates_nothing(void)
{
	sunk_count = 0;
	ha_log_configure("WARN", NULL, 0);
	HA_INFO(NULL, "%d", count_evaluation());
	HA_TRACE(NULL, "%d", count_evaluation());
	CHECK_INT(evaluated, 0);
	CHECK_INT(sunk_count, 0);
	/* The host keeps the last warning also when it prints none. */
	ha_log_configure(NULL, NULL, 0);
	HA_WARN(NULL, "%d", count_evaluation());
	CHECK_INT(evaluated, 1);
	CHECK_INT(sunk_count, 1);
}

static void our_level_adds_on_stderr(void)
{
	const char *text;

	sunk_count = 0;
	ha_log_configure("WARN", NULL, 3);
	stderr_catch();
	HA_TRACE("rail 1", "probe");
	HA_WARN("rail 1", "lost");
	text = stderr_caught();
	CHECK(strstr(text, "TRACE NET/HA: rail 1: probe\n"));
	CHECK(!strstr(text, "lost")); /* the host has printed it */
	CHECK_INT(sunk_count, 1);
	ha_log_configure("WARN", NULL, 99);
	CHECK(ha_log_enabled(HA_LOG_TRACE));
	ha_log_configure("WARN", NULL, -1);
	CHECK(!ha_log_enabled(HA_LOG_INFO));
}

static void without_a_host_stderr_follows_nccl_debug(void)
{
	const char *text;

	ha_log_set_sink(NULL);
	ha_log_configure("info", "", 0);
	stderr_catch();
	HA_INFO(NULL, "information");
	HA_LOG(HA_LOG_INFO, HA_LOG_NET, NULL, "of the net subsystem");
	HA_TRACE(NULL, "trace");
	text = stderr_caught();
	CHECK(strstr(text, "INFO NET/HA: information\n"));
	CHECK(!strstr(text, "of the net subsystem")); /* NCCL's default mask has no NET */
	CHECK(!strstr(text, "trace"));

	ha_log_configure("INFO", "COLL,NET", 0);
	stderr_catch();
	HA_LOG(HA_LOG_INFO, HA_LOG_NET, NULL, "of the net subsystem");
	HA_LOG(HA_LOG_INFO, HA_LOG_REG, NULL, "of registration");
	text = stderr_caught();
	CHECK(strstr(text, "of the net subsystem"));
	CHECK(!strstr(text, "of registration"));

	ha_log_configure("INFO", "^NET,INIT", 0);
	stderr_catch();
	HA_INFO(NULL, "information");
	HA_LOG(HA_LOG_INFO, HA_LOG_REG, NULL, "of registration");
	HA_WARN(NULL, "warning");
	text = stderr_caught();
	CHECK(!strstr(text, "information"));
	CHECK(strstr(text, "of registration"));
	CHECK(strstr(text, "WARN NET/HA: warning\n"));
}

static void a_long_line_is_cut_not_split(void)
{
	char *big = malloc(5000);
	const char *text, *end;

	memset(big, 'x', 4999);
	big[4999] = 0;
	ha_log_configure(NULL, NULL, 1);
	stderr_catch();
	HA_WARN(big, "%s", big);
	text = stderr_caught();
	end = strchr(text, '\n');
	CHECK(end && end[1] == 0);
	CHECK(strlen(text) < 1300);
	free(big);
}

int main(void)
{
	a_hosted_line_goes_to_the_host();
	a_disabled_line_evaluates_nothing();
	our_level_adds_on_stderr();
	without_a_host_stderr_follows_nccl_debug();
	a_long_line_is_cut_not_split();
	return 0;
}
