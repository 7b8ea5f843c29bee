/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/controller/rig.h"

#include "base/check.h"
#include "tests/base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void rig_sleep(unsigned ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

void rig_make(struct rig *r, const char *program, const char *settings)
{
	FILE *file;

	memset(r, 0, sizeof(*r));
	r->program = program;
	strcpy(r->top, "/tmp/hawser-controller-XXXXXX");
	CHECK(mkdtemp(r->top));
	/* nobody can take it between two starts */
	snprintf(r->address, sizeof(r->address), "unix:%s/socket", r->top);
	snprintf(r->listen, sizeof(r->listen), "--listen=%s", r->address);
	snprintf(r->settings, sizeof(r->settings), "%s/settings", r->top);
	snprintf(r->database, sizeof(r->database), "--database=%s/db", r->top);
	snprintf(r->log, sizeof(r->log), "%s/log", r->top);
	file = fopen(r->settings, "we");
	CHECK(file && fputs(settings, file) >= 0 && !fclose(file));
}

void rig_start(struct rig *r, const char *extra)
{
	char settings[128];
	const char *argv[] = { r->program,       r->listen, r->database, settings,
			       "--metrics=none", extra,     NULL };

	snprintf(settings, sizeof(settings), "--settings=%s", r->settings);
	r->pid = fork();
	CHECK(r->pid >= 0);
	if (!r->pid) {
		int fd = open(r->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
		dup2(fd, STDERR_FILENO);
		execv(r->program, (char **)(void *)argv);
		_exit(127);
	}
}

static void count_page(void *user, const struct Inc__ListResponse *list)
{
	++*(unsigned *)user;
}

void rig_await(struct rig *r)
{
	struct ha_ina_client *c = rig_client(r, 60000, true);
	unsigned pages = 0;

	if (ha_ina_client_list(c, count_page, &pages))
		fprintf(stderr, "%s; its log is %s\n", ha_ina_client_error(c), r->log);
	CHECK(pages);
	ha_ina_client_close(c);
}

int rig_stop(struct rig *r, int signal)
{
	int status;

	CHECK(!kill(r->pid, signal));
	CHECK(waitpid(r->pid, &status, 0) == r->pid);
	r->pid = 0;
	return status;
}

void rig_remove(struct rig *r)
{
	if (r->pid)
		rig_stop(r, SIGKILL);
	CHECK(!folder_remove(r->top));
}

struct ha_ina_client *rig_client(const struct rig *r, unsigned deadline_ms, bool retry)
{
	struct ha_ina_client_options options = { .address = r->address,
						 .deadline_ms = deadline_ms,
						 .retry = retry };
	char why[256];
	struct ha_ina_client *c = ha_ina_client_open(&options, why, sizeof(why));

	CHECK(c);
	return c;
}
