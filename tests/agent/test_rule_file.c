/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of rules by hand: one that cannot be read is kept when it is replaced, and what is
 * written is on the disk before it takes the old one's place. */
#include "agent/rule_file.h"

#include "agent/daemon.h"
#include "base/check.h"
#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

static struct ha_daemon d;
static struct mpib_hint_shm shm;
static char top[64] = "/tmp/hawser-rules-XXXXXX";

/* ---- what is done to files, in order: f (a file's fsync), d (a folder's), r (rename) ---- */

static char done[32];

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);

static void note(const char *step)
{
	CHECK(strlen(done) + 1 < sizeof(done));
	strcat(done, step);
}

int __wrap_fsync(int fd)
{
	note(fd == d.folder.fd ? "d" : "f");
	return __real_fsync(fd);
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	note("r");
	return __real_renameat(from_fd, from, to_fd, to);
}

/* ---- tests ---- */

static void start_agent(void)
{
	char file[128];
	const char *name;

	memset(&d, 0, sizeof(d));
	memset(&shm, 0, sizeof(shm));
	shm.header = (struct mpib_hint_header) { MPIB_HINT_MAGIC, MPIB_HINT_MAX_ENTRIES, 1, 0 };
	snprintf(file, sizeof(file), "%s/agent.sock", top);
	CHECK_INT(ha_folder_open(&d.folder, file, &name), 0);
	ha_slots_open(&d.slots, &shm, 0);
	CHECK(!ha_advisor_open(&d.advisor, &d.slots, "manual", "", 0));
	ha_rule_file_load(&d);
}

static void end_agent(void)
{
	ha_advisor_close(&d.advisor);
	ha_slots_close(&d.slots);
	ha_folder_close(&d.folder);
}

static void set_rule(const char *source, const char *share)
{
	struct ha_rule rule;

	CHECK(!ha_rule_parse(source, "*", share, &rule));
	CHECK(!ha_rule_file_change(&d, &rule, true));
}

static void write_file(const char *name, const char *text)
{
	int fd = openat(d.folder.fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* "" where there is none. */
static const char *read_file(const char *name)
{
	static char text[1024];
	int fd = openat(d.folder.fd, name, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	CHECK(n >= 0);
	text[n] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

static void rules_are_kept(void)
{
	start_agent();
	set_rule("10.0.0.1", "100");
	set_rule("10.0.0.2", "200");
	end_agent();
	start_agent();
	CHECK_INT(d.advisor.manual.n, 2);
	CHECK_TEXT(read_file("rules.bad"), "");
	end_agent();
}

/* A mistake in one line, and then a rule is set: the file with the former rules is still there, and
 * only the first time. */
static void a_bad_file_is_kept(void)
{
	static const char bad[] = "10.0.0.1 * 100\nnonsense\n10.0.0.2 * 200\n";

	start_agent();
	write_file("rules", bad);
	end_agent();
	start_agent();
	CHECK_INT(d.advisor.manual.n, 0);
	CHECK_TEXT(read_file("rules"), bad); /* nothing has been changed yet */
	set_rule("10.0.0.3", "300");
	CHECK_TEXT(read_file("rules.bad"), bad);
	CHECK(strstr(read_file("rules"), "10.0.0.3/32 * 300\n"));
	set_rule("10.0.0.4", "400");
	CHECK_TEXT(read_file("rules.bad"), bad);
	end_agent();
	start_agent();
	CHECK_INT(d.advisor.manual.n, 2);
	end_agent();
}

/* The old file can be lost with the machine's power only when the new one is on the disk. */
static void a_file_is_on_the_disk_first(void)
{
	start_agent();
	done[0] = 0;
	set_rule("10.0.0.5", "500");
	CHECK_TEXT(done, "frd");
	end_agent();
}

int main(void)
{
	ha_log_configure(NULL, NULL, 1);
	CHECK(mkdtemp(top));
	rules_are_kept();
	a_bad_file_is_kept();
	a_file_is_on_the_disk_first();
	start_agent();
	unlinkat(d.folder.fd, "rules", 0);
	unlinkat(d.folder.fd, "rules.bad", 0);
	end_agent();
	CHECK_INT(rmdir(top), 0);
	return 0;
}
