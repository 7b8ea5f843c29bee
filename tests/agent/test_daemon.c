/* SPDX-License-Identifier: BSD-3-Clause */
/* A living agent: full, hostile peers, dead processes, files and modes, cleaners, a second
 * agent. */
#include "base/check.h"
#include "tests/agent/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void all_slots_taken(const struct rig *r)
{
	const struct mpib_hint_shm *shm = rig_hints(r);
	int a = rig_dial(r), b = rig_dial(r);
	uint32_t slot, seen[MPIB_HINT_MAX_ENTRIES] = { 0 };

	for (unsigned i = 0; i < MPIB_HINT_MAX_ENTRIES; i++) {
		CHECK_INT(rig_register(a, i, i + 1, &slot), MPIB_STATUS_OK);
		CHECK_INT(seen[slot]++, 0);
		CHECK_INT(shm->entries[slot].src_ip, rig_flow_src(i + 1));
		CHECK_INT(shm->entries[slot].dst_ip, rig_flow_dst(i + 1));
	}
	CHECK_INT(rig_register(b, 1000, 1000, &slot), MPIB_STATUS_NO_SLOT);
	CHECK_INT(rig_register(b, 1001, 5, &slot), MPIB_STATUS_OK); /* shares */
	CHECK_INT(rig_number(r, "slots_used"), 256);
	CHECK_INT(rig_number(r, "refused_no_slot"), 1);
	CHECK_INT(rig_deregister(a, 4), MPIB_STATUS_OK); /* flow 5 has another */
	CHECK_INT(rig_register(b, 1000, 1000, &slot), MPIB_STATUS_NO_SLOT);
	CHECK_INT(rig_deregister(b, 1001), MPIB_STATUS_OK);
	CHECK_INT(rig_register(b, 1000, 1000, &slot), MPIB_STATUS_OK);
	CHECK_INT(rig_deregister(b, 1000), MPIB_STATUS_OK);
	/* By any socket of the process, and without one. */
	close(a);
	for (unsigned i = 0; i < MPIB_HINT_MAX_ENTRIES; i++)
		CHECK_INT(rig_deregister(b, i), i == 4 ? MPIB_STATUS_INVALID : MPIB_STATUS_OK);
	close(b);
	CHECK_INT(rig_number(r, "slots_used"), 0);
	rig_await(r, "sockets", 0);
	munmap((void *)(uintptr_t)shm, sizeof(*shm));
}

/* Without a request to: killed with its sockets open, and after it had closed them. */
static void dead_processes_are_noticed(const struct rig *r)
{
	for (int closed = 0; closed < 2; closed++) {
		int ready[2], status;
		char byte;
		pid_t child;

		CHECK(!pipe(ready));
		child = fork();
		if (!child) {
			int fd = rig_dial(r);

			for (unsigned i = 0; i < 10; i++)
				CHECK_INT(rig_register(fd, i, i + 1, NULL), MPIB_STATUS_OK);
			if (closed)
				close(fd);
			CHECK(write(ready[1], "x", 1) == 1);
			pause();
		}
		CHECK(read(ready[0], &byte, 1) == 1);
		rig_await(r, "sockets", !closed);
		CHECK_INT(rig_number(r, "registered_connections"), 10);
		rig_sleep(1500); /* it still runs: nothing is taken from it */
		CHECK_INT(rig_number(r, "registered_connections"), 10);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
		rig_await(r, "registered_connections", 0);
		CHECK_INT(rig_number(r, "slots_used"), 0);
		CHECK_INT(rig_number(r, "reclaimed"), 10 * (closed + 1));
		close(ready[0]);
		close(ready[1]);
	}
}

static void hostile_peers(const struct rig *r)
{
	static const char junk[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	struct mpib_msg_header h = { MPIB_REG_MAGIC, 20, 99, 0 };
	long dropped = rig_number(r, "dropped");
	struct mpib_deregister_response answer;
	char byte, unknown[20] = { 0 };
	int fd = rig_dial(r), other;

	rig_send(fd, junk, sizeof(junk));
	CHECK(!rig_receive(fd, &byte, 1)); /* hung up, without an answer */
	close(fd);
	fd = rig_dial(r);
	memcpy(unknown, &h, sizeof(h));
	rig_send(fd, unknown, sizeof(unknown));
	CHECK(rig_receive(fd, &answer, sizeof(answer)));
	CHECK_INT(answer.status, MPIB_STATUS_INVALID);
	CHECK_INT(rig_register(fd, 1, 1, NULL), MPIB_STATUS_OK); /* and goes on */
	/* Half a message: others are served meanwhile, and in the end it is hung up on. */
	rig_send(fd, &h, 5);
	other = rig_dial(r);
	CHECK_INT(rig_register(other, 2, 2, NULL), MPIB_STATUS_OK);
	CHECK(!rig_receive(fd, &byte, 1));
	close(fd);
	/* Half a message and the end. */
	fd = rig_dial(r);
	rig_send(fd, &h, 5);
	close(fd);
	rig_await(r, "dropped", dropped + 3);
	/* we are alive: what was said counts */
	CHECK_INT(rig_number(r, "registered_connections"), 2);
	CHECK_INT(rig_deregister(other, 1), MPIB_STATUS_OK);
	CHECK_INT(rig_deregister(other, 2), MPIB_STATUS_OK);
	close(other);
}

/* Until the agent takes no more for two seconds; false: it has hung up. */
static bool send_much(int fd)
{
	struct mpib_deregister m = { { MPIB_REG_MAGIC, sizeof(m), MPIB_MSG_DEREGISTER, 0 }, 1 };
	int sent = 0;

	while (send(fd, &m, sizeof(m), MSG_NOSIGNAL) == (ssize_t)sizeof(m) && sent < 10000000)
		sent++;
	CHECK(sent < 10000000);
	return errno == EAGAIN;
}

/* It asks and asks, and takes no answer. */
static void a_peer_that_does_not_listen(const struct rig *r)
{
	long dropped = rig_number(r, "dropped");
	int fd = rig_dial(r), other = rig_dial(r);
	struct timeval time_limit = { 2, 0 };
	bool open;

	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time_limit, sizeof(time_limit)));
	do { /* again, when the agent only had no processor: it goes on to answer */
		open = send_much(fd);
		CHECK_INT(rig_register(other, 2, 2, NULL), MPIB_STATUS_OK);
		CHECK_INT(rig_deregister(other, 2), MPIB_STATUS_OK);
	} while (open && rig_number(r, "dropped") == dropped);
	rig_await(r, "dropped", dropped + 1);
	close(fd);
	close(other);
}

static void sockets_of_one_process_are_bounded(const struct rig *r)
{
	int fd[64], one_more;
	char byte;

	for (int i = 0; i < 64; i++)
		fd[i] = rig_dial(r);
	CHECK_INT(rig_register(fd[63], 1, 1, NULL), MPIB_STATUS_OK);
	one_more = rig_dial(r);
	CHECK(!rig_receive(one_more, &byte, 1));
	close(one_more);
	CHECK_INT(rig_deregister(fd[0], 1), MPIB_STATUS_OK);
	for (int i = 0; i < 64; i++)
		close(fd[i]);
	rig_await(r, "sockets", 0);
}

static mode_t mode_of(const struct rig *r, const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s/mpib/%s", r->top, name);
	CHECK(!lstat(path, &st));
	CHECK_INT(st.st_uid, geteuid());
	return st.st_mode & 07777;
}

static void file_modes_are_set(struct rig *r)
{
	mode_t before = umask(0);

	rig_start(r, NULL);
	CHECK_INT(mode_of(r, ""), 0755);
	CHECK_INT(mode_of(r, "agent.sock"), 0600);
	CHECK_INT(mode_of(r, "control"), 0600);
	CHECK_INT(mode_of(r, "hints"), 0644);
	rig_stop(r, SIGTERM);
	rig_start(r, "--users", "*", NULL);
	CHECK_INT(mode_of(r, "agent.sock"), 0666);
	CHECK_INT(mode_of(r, "control"), 0600);
	rig_stop(r, SIGTERM);
	umask(before);
}

/* A child as another user: true if it could register. Only root can try. */
static bool nobody_registers(const struct rig *r)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct mpib_deregister m = { { MPIB_REG_MAGIC, sizeof(m), MPIB_MSG_DEREGISTER, 0 },
					     1 };
		struct mpib_deregister_response answer;
		int fd;

		if (setuid(65534))
			_exit(2);
		fd = rig_dial(r);
		_exit(send(fd, &m, sizeof(m), MSG_NOSIGNAL) != sizeof(m) ||
		      !rig_receive(fd, &answer, sizeof(answer)));
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return !WEXITSTATUS(status);
}

static void only_named_users_register(struct rig *r)
{
	if (geteuid())
		return; /* who is not root has only himself to try with */
	CHECK(!chmod(r->top, 0755));
	rig_start(r, "--users", "1234", NULL);
	CHECK(!nobody_registers(r));
	CHECK_INT(rig_number(r, "unauthorized"), 1);
	rig_stop(r, SIGTERM);
	rig_start(r, "--users", "1234,65534", NULL);
	CHECK(nobody_registers(r));
	rig_stop(r, SIGTERM);
	rig_start(r, "--users", "*", NULL);
	CHECK(nobody_registers(r));
	CHECK_INT(rig_number(r, "unauthorized"), 0);
	rig_stop(r, SIGTERM);
	CHECK_INT(rig_fail(r, "--users", "no-such-user-here", NULL), 2);
}

static void wait_for_link(const char *path, const char *target)
{
	char at[128];
	ssize_t n = -1;

	for (int i = 0; i < 600; i++) {
		n = readlink(path, at, sizeof(at) - 1);
		if (n > 0)
			break;
		rig_sleep(100);
	}
	CHECK(n > 0);
	at[n] = 0;
	CHECK_TEXT(at, target);
}

static bool log_has(const struct rig *r, const char *words)
{
	static char text[65536];
	int fd = open(r->log, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return strstr(text, words);
}

/*
 * The path of MPIB's document leads to the agent's directory, wherever that is; who has squatted it
 * keeps it, and the agent serves all the same.
 */
static void alias_is_kept(struct rig *r)
{
	char dir[128], link[128], file[160];
	struct stat st;

	snprintf(dir, sizeof(dir), "%s/mpib", r->top);
	snprintf(link, sizeof(link), "%s/alias", r->top);
	snprintf(file, sizeof(file), "%s/hints", link);
	rig_start(r, "--alias", link, NULL);
	wait_for_link(link, dir);
	CHECK(!stat(file, &st) && st.st_size == 4112);
	/* a cleaner of /tmp */
	CHECK(!unlink(link));
	wait_for_link(link, dir);
	rig_stop(r, SIGTERM);
	rig_start(r, "--alias", link, NULL);
	wait_for_link(link, dir);
	CHECK(!log_has(r, "something else has that name"));
	rig_stop(r, SIGTERM);
	CHECK(!unlink(link));
	CHECK(!mkdir(link, 0777));
	rig_start(r, "--alias", link, NULL);
	CHECK_INT(rig_number(r, "slots_used"), 0);
	CHECK(log_has(r, "something else has that name"));
	CHECK(!lstat(link, &st) && S_ISDIR(st.st_mode));
	rig_stop(r, SIGTERM);
	CHECK(!rmdir(link));
	/* a link somewhere else is not ours */
	CHECK(!symlink("/nonexistent", link));
	rig_start(r, "--alias", link, NULL);
	wait_for_link(link, "/nonexistent");
	rig_stop(r, SIGTERM);
}

static void directories_that_are_not_ours(struct rig *r)
{
	char dir[128], other[128], hints[128];
	struct stat st;

	snprintf(dir, sizeof(dir), "%s/mpib", r->top);
	snprintf(other, sizeof(other), "%s/victim", r->top);
	snprintf(hints, sizeof(hints), "%s/mpib/hints", r->top);
	CHECK(!chmod(dir, 0777));
	CHECK_INT(rig_fail(r, NULL), 1);
	CHECK(!chmod(dir, 01777));
	CHECK_INT(rig_fail(r, NULL), 1);
	CHECK(!chmod(dir, 0755));
	if (!geteuid()) {
		CHECK(!chown(dir, 12345, 0));
		CHECK_INT(rig_fail(r, NULL), 1);
		CHECK(!chown(dir, 0, 0));
	}
	/* A link in place of the directory, or of the file, leads nobody to somebody else's
	 * file. */
	CHECK(!mkdir(other, 0755));
	rig_start(r, NULL);
	rig_stop(r, SIGTERM);
	CHECK(!unlink(hints));
	strcat(other, "/file");
	close(open(other, O_CREAT | O_WRONLY, 0600));
	CHECK(!symlink(other, hints));
	rig_start(r, NULL);
	CHECK(!stat(other, &st) && !st.st_size);
	CHECK(!lstat(hints, &st) && S_ISREG(st.st_mode));
	rig_stop(r, SIGTERM);
	/* A file that is too short is replaced, never changed: somebody may have mapped it. */
	CHECK(!truncate(hints, 100));
	CHECK(!stat(hints, &st));
	rig_start(r, NULL);
	CHECK_INT(rig_number(r, "slots_used"), 0);
	{
		struct stat now;

		CHECK(!stat(hints, &now) && now.st_ino != st.st_ino && now.st_size == 4112);
	}
	rig_stop(r, SIGTERM);
}

static void one_agent_at_a_time(struct rig *r)
{
	const struct mpib_hint_shm *shm;
	struct stat before, after;
	char control[128];

	rig_start(r, NULL);
	shm = rig_hints(r);
	CHECK(!stat(r->hints, &before));
	CHECK_INT(rig_fail(r, NULL), 1);
	CHECK(!stat(r->hints, &after) && before.st_ino == after.st_ino);
	CHECK(rig_number(r, "pid") == r->agent);
	CHECK_INT(rig_stop(r, SIGTERM), 0);
	snprintf(control, sizeof(control), "%s/mpib/control", r->top);
	CHECK(access(r->socket, F_OK) && access(control, F_OK) && !access(r->hints, F_OK));
	munmap((void *)(uintptr_t)shm, sizeof(*shm));
}

/* As a cleaner of /tmp does: everything gone under a living agent. */
static void removed_files_come_back(struct rig *r)
{
	const struct mpib_hint_shm *shm;
	char command[128];
	uint32_t slot;
	int fd;

	rig_start(r, NULL);
	fd = rig_dial(r);
	CHECK_INT(rig_register(fd, 1, 1, &slot), MPIB_STATUS_OK);
	snprintf(command, sizeof(command), "rm -rf %s/mpib", r->top);
	CHECK(!system(command));
	rig_await(r, "restored", 1);
	shm = rig_hints(r);
	CHECK_INT(shm->entries[slot].src_ip, rig_flow_src(1));
	CHECK_INT(rig_deregister(fd, 1), MPIB_STATUS_OK); /* the old socket still works */
	CHECK_INT(shm->entries[slot].src_ip, 0);
	close(fd);
	fd = rig_dial(r);
	CHECK_INT(rig_register(fd, 1, 2, &slot), MPIB_STATUS_OK);
	CHECK_INT(shm->entries[slot].src_ip, rig_flow_src(2));
	close(fd);
	munmap((void *)(uintptr_t)shm, sizeof(*shm));
	rig_stop(r, SIGTERM);
}

static void called_wrongly(struct rig *r)
{
	CHECK_INT(rig_fail(r, "--policy", "nonsense", NULL), 2);
	CHECK_INT(rig_fail(r, "--metrics", "nonsense", NULL), 2);
	CHECK_INT(rig_fail(r, "--metrics", "127.0.0.1:99999", NULL), 2);
	CHECK_INT(rig_fail(r, "--interval", "5", NULL), 2);
	CHECK_INT(rig_fail(r, "--connections", "x", NULL), 2);
	CHECK_INT(rig_fail(r, "argument", NULL), 2);
	CHECK_INT(rig_fail(r, "--socket", "/nonexistent/mpib/agent.sock", NULL), 1);
}

int main(int argc, char **argv)
{
	struct rig r;

	CHECK(argc >= 2);
	rig_program = argv[1];
	rig_make(&r);
	file_modes_are_set(&r);
	only_named_users_register(&r);
	rig_start(&r, NULL);
	all_slots_taken(&r);
	dead_processes_are_noticed(&r);
	hostile_peers(&r);
	a_peer_that_does_not_listen(&r);
	sockets_of_one_process_are_bounded(&r);
	CHECK_INT(rig_stop(&r, SIGTERM), 0);
	directories_that_are_not_ours(&r);
	alias_is_kept(&r);
	one_agent_at_a_time(&r);
	removed_files_come_back(&r);
	called_wrongly(&r);
	rig_remove(&r);
	return 0;
}
