/* SPDX-License-Identifier: BSD-3-Clause */
/* ha agent: the hints that ha-agent gives the plugins of this host, and rules by hand that replace
 * them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/rules.h"
#include "base/config.h"
#include "base/options.h"
#include "base/socket.h"
#include "include/mpib_agent_iface.h"
#include "tools/ha.h"

/*
 * how long a heartbeat is watched at most: so long plugins accept one that stands still
 * (HA_NCCL_AGENT_STALE_MS)
 */
#define HEARTBEAT_WAIT_MS 2000
#define LISTEN_MS 20
#define TIME_LIMIT_MS 5000 /* for an answer of the agent */

#define WORDS_MAX 4
#define LINE_BYTES 250 /* the agent reads 255 in a line */

struct options {
	const char *word[WORDS_MAX];
	unsigned words;
};

#define HA_TARGET struct options

static const struct ha_option operands[] = {
	{ "COMMAND", 0, NULL, NULL, HA_LIST(word, words, WORDS_MAX) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha agent",
	.synopsis =
		"show                          the hints, as plugins read them; needs no agent\n"
		"dump                          all that the agent knows, as JSON\n"
		"set SOURCE DESTINATION SHARE  SUP's share of these flows, parts per 1024\n"
		"unset SOURCE DESTINATION      back to the agent's policy",
	.operands = operands,
	.needed = 1,
	.notes = "SOURCE and DESTINATION: IPv4 addresses of the scale-out rail, with /LENGTH for a "
		 "network, * for any. The more "
		 "exact rule wins. Rules are kept over a restart of the agent. "
		 "HA_NCCL_AGENT_SOCKET and HA_NCCL_AGENT_HINTS say "
		 "where it is.\nExit status: 1 there is no agent, or it refuses; 2 called wrongly.",
};

/* ---- the file of hints ---- */

static int hints_read(const char *path, struct mpib_hint_shm *shm)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0) {
		fprintf(stderr,
			"ha agent: %s: %s; start ha-agent, or say in HA_NCCL_AGENT_HINTS where its "
			"file is\n",
			path, strerror(errno));
		return 1;
	}
	if (!fstat(fd, &st) && st.st_uid != 0 && st.st_uid != geteuid()) {
		fprintf(stderr,
			"ha agent: %s: it is another user's (%u): no plugin reads it; remove it, "
			"or name another in "
			"HA_NCCL_AGENT_HINTS\n",
			path, (unsigned)st.st_uid);
		close(fd);
		return 1;
	}
	n = pread(fd, shm, sizeof(*shm), 0);
	close(fd);
	if (n == (ssize_t)sizeof(*shm) && shm->header.magic == MPIB_HINT_MAGIC &&
	    shm->header.max_entries == MPIB_HINT_MAX_ENTRIES)
		return 0;
	fprintf(stderr, "ha agent: %s holds no hints\n", path);
	return 1;
}

static const char *heartbeat_text(uint32_t before, uint32_t after)
{
	if (before != after)
		return "is running: plugins follow the hints";
	return after ? "has stopped: plugins choose by topology"
		     : "is missing: this agent is not hawser's";
}

static int show_hints(const char *path)
{
	struct timespec listen = { 0, LISTEN_MS * 1000000L };
	char src[INET_ADDRSTRLEN], dst[INET_ADDRSTRLEN];
	struct mpib_hint_shm shm;
	unsigned listed = 0;
	uint32_t before;

	if (hints_read(path, &shm))
		return 1;
	before = shm.header.beat;
	for (int ms = 0; ms < HEARTBEAT_WAIT_MS && shm.header.beat == before; ms += LISTEN_MS) {
		nanosleep(&listen, NULL);
		if (hints_read(path, &shm))
			return 1;
	}
	printf("%s: the agent's heartbeat %s\n", path, heartbeat_text(before, shm.header.beat));
	for (int i = 0; i < MPIB_HINT_MAX_ENTRIES; i++) {
		const struct mpib_hint_entry *e = &shm.entries[i];

		if (!e->src_ip && !e->dst_ip)
			continue;
		if (!listed++)
			printf("%4s  %-15s  %-15s  %5s\n", "slot", "source", "destination",
			       "share");
		inet_ntop(AF_INET, &e->src_ip, src, sizeof(src));
		inet_ntop(AF_INET, &e->dst_ip, dst, sizeof(dst));
		printf("%4d  %-15s  %-15s  %5u%s\n", i, src, dst, e->sup_bw,
		       e->seq & 1 ? "  (being written)" : "");
	}
	if (!listed)
		printf("no flow is registered\n");
	return fflush(stdout) || ferror(stdout) ? 1 : 0;
}

/* ---- the agent ---- */

static int connect_agent(const char *socket_path, char *path, size_t size)
{
	const char *slash = strrchr(socket_path, '/');

	snprintf(path, size, "%.*scontrol", slash ? (int)(slash - socket_path) + 1 : 0,
		 socket_path);
	return ha_socket_connect_unix(path, SOCK_STREAM, TIME_LIMIT_MS);
}

/* The answer without its first line goes to stdout. */
static int read_answer(int fd)
{
	char first[256] = "", data[4096];
	size_t have = 0, rest;
	char *end = NULL;
	ssize_t n;

	while (!end && have < sizeof(first) - 1 &&
	       (n = read(fd, first + have, sizeof(first) - 1 - have)) > 0) {
		have += (size_t)n;
		first[have] = 0;
		end = strchr(first, '\n');
	}
	if (!end) {
		fprintf(stderr,
			"ha agent: the agent does not answer; it hangs, or you are not its user\n");
		return 1;
	}
	*end = 0;
	if (strcmp(first, "ok")) {
		fprintf(stderr, "ha agent: %s\n", strncmp(first, "error: ", 7) ? first : first + 7);
		return 1;
	}
	rest = have - (size_t)(end + 1 - first);
	fwrite(end + 1, 1, rest, stdout);
	while ((n = read(fd, data, sizeof(data))) > 0)
		fwrite(data, 1, (size_t)n, stdout);
	return n < 0 || fflush(stdout) || ferror(stdout) ? 1 : 0;
}

/* The words with spaces between; false: they do not fit. */
static bool join_words(const struct options *o, char *line, size_t size)
{
	size_t used = 0;

	for (unsigned i = 0; i < o->words && used < size; i++)
		used += (size_t)snprintf(line + used, size - used, "%s%s", i ? " " : "",
					 o->word[i]);
	return used < size;
}

/* As the agent reads them, so that a mistake is told also where none runs. The exit status. */
static int check_rule(const struct options *o, const char *line)
{
	struct ha_rule rule;
	const char *share = o->words > 3 ? o->word[3] : "0"; /* of unset */
	const char *why = ha_rule_parse(o->word[1], o->word[2], share, &rule);

	return why ? ha_program_refuse(&program, "'%s': %s", line, why) - 1 : 0;
}

static int ask_agent(const char *socket_path, const char *line)
{
	char path[600], sent[LINE_BYTES + 1];
	int fd, rc, length = snprintf(sent, sizeof(sent), "%s\n", line);

	fd = connect_agent(socket_path, path, sizeof(path));
	if (fd < 0) {
		fprintf(stderr,
			"ha agent: %s: %s; start ha-agent, or say in HA_NCCL_AGENT_SOCKET where it "
			"listens\n",
			path, strerror(-fd));
		return 1;
	}
	rc = send(fd, sent, (size_t)length, MSG_NOSIGNAL) == length ? read_answer(fd) : 1;
	close(fd);
	return rc;
}

/* dump, set or unset. */
static int take_command(const char *socket_path, const struct options *o)
{
	char line[LINE_BYTES];
	int rc;

	if (!join_words(o, line, sizeof(line)))
		return ha_program_refuse(&program, "'%.64s...' is too long", o->word[1]) - 1;
	rc = o->words > 1 ? check_rule(o, line) : 0;
	return rc ? rc : ask_agent(socket_path, line);
}

int ha_cmd_agent(int argc, char **argv)
{
	static const struct {
		const char *name;
		unsigned words;
	} commands[] = { { "show", 1 }, { "dump", 1 }, { "set", 4 }, { "unset", 3 } };
	struct options o = { 0 };
	struct ha_config config;
	int result = ha_options_parse(&program, argc, argv, &o);

	if (result)
		return result - 1;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (o.words != commands[i].words || strcmp(o.word[0], commands[i].name))
			continue;
		ha_config_load_env(&config);
		return i ? take_command(config.agent_socket, &o) : show_hints(config.agent_hints);
	}
	return ha_program_refuse(&program, "'%.64s' and %u words after it are no command",
				 o.word[0], o.words - 1) -
	       1;
}
