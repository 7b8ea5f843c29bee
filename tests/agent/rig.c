/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/agent/rig.h"

#include "base/check.h"
#include "tests/base/folder.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 20
#define ARGUMENTS 24

const char *rig_program;

void rig_sleep(unsigned ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

void rig_make(struct rig *r)
{
	memset(r, 0, sizeof(*r));
	strcpy(r->top, "/tmp/hawser-agent-XXXXXX");
	CHECK(mkdtemp(r->top));
	snprintf(r->socket, sizeof(r->socket), "%s/mpib/agent.sock", r->top);
	snprintf(r->hints, sizeof(r->hints), "%s/mpib/hints", r->top);
	snprintf(r->log, sizeof(r->log), "%s/log", r->top);
}

static pid_t start_agent(struct rig *r, va_list ap)
{
	const char *argv[ARGUMENTS] = { rig_program, "--socket",  r->socket, "--hints",
					r->hints,    "--metrics", "none" };
	int n = 7;
	pid_t pid;

	while (n < ARGUMENTS - 1 && (argv[n] = va_arg(ap, const char *)) != NULL)
		n++;
	argv[n] = NULL;
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		int fd = open(r->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
		dup2(fd, STDERR_FILENO);
		execv(rig_program, (char **)(void *)argv);
		_exit(127);
	}
	return pid;
}

static int try_dial(const char *path)
{
	struct timeval time_limit = { SECONDS, 0 };
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time_limit, sizeof(time_limit)));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time_limit, sizeof(time_limit)));
	strcpy(to.sun_path, path);
	if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fd;
	close(fd);
	return -1;
}

/* The control socket comes last, so whoever answers there is up. */
static bool agent_answers(const struct rig *r)
{
	return rig_number(r, "pid") == r->agent;
}

void rig_start(struct rig *r, ...)
{
	va_list ap;

	va_start(ap, r);
	r->agent = start_agent(r, ap);
	va_end(ap);
	for (int i = 0; i < 6000 && !agent_answers(r); i++) {
		if (waitpid(r->agent, NULL, WNOHANG) == r->agent) {
			fprintf(stderr, "the agent has ended; its log is %s\n", r->log);
			exit(1);
		}
		rig_sleep(10);
	}
	CHECK(agent_answers(r));
}

int rig_fail(struct rig *r, ...)
{
	va_list ap;
	pid_t pid;
	int status;

	va_start(ap, r);
	pid = start_agent(r, ap);
	va_end(ap);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

int rig_stop(struct rig *r, int signal)
{
	int status;

	CHECK(!kill(r->agent, signal));
	CHECK(waitpid(r->agent, &status, 0) == r->agent);
	r->agent = 0;
	return status;
}

void rig_remove(struct rig *r)
{
	if (r->agent)
		rig_stop(r, SIGKILL);
	CHECK(!folder_remove(r->top));
}

int rig_dial(const struct rig *r)
{
	int fd = try_dial(r->socket);

	CHECK(fd >= 0);
	return fd;
}

void rig_send(int fd, const void *data, size_t size)
{
	CHECK_INT(send(fd, data, size, MSG_NOSIGNAL), size);
}

bool rig_receive(int fd, void *data, size_t size)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = recv(fd, (char *)data + have, size - have, 0);

		CHECK(n >= 0 || errno == ECONNRESET);
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

uint32_t rig_ip(unsigned a, unsigned b, unsigned c, unsigned d)
{
	return htonl(a << 24 | b << 16 | c << 8 | d);
}

uint32_t rig_flow_src(unsigned flow)
{
	return rig_ip(10, 0, flow >> 8, flow & 255);
}

uint32_t rig_flow_dst(unsigned flow)
{
	return rig_ip(10, 1, flow >> 8, flow & 255);
}

uint32_t rig_register(int fd, uint32_t conn_id, unsigned flow, uint32_t *slot)
{
	struct mpib_register m = { { MPIB_REG_MAGIC, sizeof(m), MPIB_MSG_REGISTER, 0 },
				   conn_id,
				   rig_flow_src(flow),
				   rig_flow_dst(flow),
				   0,
				   0 };
	struct mpib_register_response answer;

	rig_send(fd, &m, sizeof(m));
	CHECK(rig_receive(fd, &answer, sizeof(answer)));
	CHECK_INT(answer.header.magic, MPIB_REG_MAGIC);
	CHECK_INT(answer.header.type, MPIB_MSG_RESPONSE);
	CHECK_INT(answer.header.length, 16);
	CHECK((answer.status == MPIB_STATUS_OK) == (answer.hint_slot < MPIB_HINT_MAX_ENTRIES));
	if (slot)
		*slot = answer.hint_slot;
	return answer.status;
}

uint32_t rig_deregister(int fd, uint32_t conn_id)
{
	struct mpib_deregister m = { { MPIB_REG_MAGIC, sizeof(m), MPIB_MSG_DEREGISTER, 0 },
				     conn_id };
	struct mpib_deregister_response answer;

	rig_send(fd, &m, sizeof(m));
	CHECK(rig_receive(fd, &answer, sizeof(answer)));
	CHECK_INT(answer.header.magic, MPIB_REG_MAGIC);
	CHECK_INT(answer.header.type, MPIB_MSG_RESPONSE);
	CHECK_INT(answer.header.length, 12);
	return answer.status;
}

long rig_number(const struct rig *r, const char *name)
{
	static char text[1 << 20];
	char path[128], key[64];
	size_t have = 0;
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/mpib/control", r->top);
	fd = try_dial(path);
	if (fd < 0)
		return -1;
	if (send(fd, "dump\n", 5, MSG_NOSIGNAL) == 5)
		while (have < sizeof(text) - 1 &&
		       (n = recv(fd, text + have, sizeof(text) - 1 - have, 0)) > 0)
			have += (size_t)n;
	close(fd);
	text[have] = 0;
	snprintf(key, sizeof(key), "\"%s\": ", name);
	at = strstr(text, key);
	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

void rig_await(const struct rig *r, const char *name, long expected)
{
	for (int i = 0; i < 3000 && rig_number(r, name) != expected; i++)
		rig_sleep(20);
	CHECK_INT(rig_number(r, name), expected);
}

const struct mpib_hint_shm *rig_hints(const struct rig *r)
{
	int fd = open(r->hints, O_RDONLY | O_CLOEXEC);
	void *at;

	CHECK(fd >= 0);
	at = mmap(NULL, sizeof(struct mpib_hint_shm), PROT_READ, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	close(fd);
	return at;
}
