/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/perf/launch.h"
#include "tools/perf/options.h"
#include "tools/perf/rendezvous.h"

#define DEFAULT_RANKS 2
#define GRACE_MS      3000 /* how long ranks may take to leave after one of them died */

/* --- the launchers' environments --------------------------------------------------------------------------------- */

/*
 * Who sets what. Asked in this order: mpirun and srun may start a torchrun, never the other way round, so the innermost
 * comes first; PMI variables are also set by srun and by Open MPI, so these two come last.
 */
static const struct launcher {
	const char *name, *rank, *ranks, *local_rank, *job;
} launchers[] = {
	{ "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID" },
	{ "Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
	  "OMPI_MCA_ess_base_jobid" },
	{ "MVAPICH's mpirun", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", NULL },
	{ "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_ID" },
	{ "srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID" },
	{ "MPICH's mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_JOBID" },
	{ "a PMIx launcher", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_NAMESPACE" },
};

static bool environment_int(const char *name, int *value)
{
	const char *text = name ? getenv(name) : NULL;
	char *end;
	long n;

	if (!text || !*text)
		return false;
	n = strtol(text, &end, 10);
	if (*end || n < 0 || n > 1 << 20)
		return false;
	*value = (int)n;
	return true;
}

static const struct launcher *launcher_find(struct ha_place *place)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const struct launcher *l = &launchers[i];

		if (!environment_int(l->rank, &place->rank) || !environment_int(l->ranks, &place->ranks))
			continue;
		place->local_rank = place->rank;
		(void)environment_int(l->local_rank, &place->local_rank);
		return l;
	}
	return NULL;
}

static uint64_t text_hash(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3u; /* FNV-1a */
	return h;
}

/* The first host of a Slurm list such as "node[03-05,9],other". */
static bool first_slurm_host(const char *list, char *host, size_t size)
{
	size_t prefix, digits;

	if (!list || !*list)
		return false;
	prefix = strcspn(list, "[,");
	if (list[prefix] != '[') {
		snprintf(host, size, "%.*s", (int)prefix, list);
		return true;
	}
	digits = strspn(list + prefix + 1, "0123456789");
	snprintf(host, size, "%.*s%.*s", (int)prefix, list, (int)digits, list + prefix + 1);
	return digits > 0;
}

static int rendezvous_parse(const char *text, struct ha_place *place)
{
	const char *colon = strrchr(text, ':');
	char *end;
	long port = colon ? strtol(colon + 1, &end, 10) : 0;
	size_t length = colon ? (size_t)(colon - text) : 0;

	if (!colon || *end || port < 1 || port > 65535 || !length || length >= sizeof(place->host)) {
		fprintf(stderr, "ha perf: --rendezvous takes HOST:PORT, not '%s'\n", text);
		return -EINVAL;
	}
	if (*text == '[' && text[length - 1] == ']') { /* [IPv6]:port */
		text++;
		length -= 2;
	}
	snprintf(place->host, sizeof(place->host), "%.*s", (int)length, text);
	place->port = (int)port;
	return 0;
}

/* Where rank 0 is: the option, MASTER_ADDR and MASTER_PORT, Slurm's list of nodes, or this very machine. */
static int rendezvous_find(const struct ha_options *options, const struct launcher *launcher, struct ha_place *place)
{
	const char *address = getenv("MASTER_ADDR"), *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
	int port = 0, local_ranks = 0;

	if (options->rendezvous)
		return rendezvous_parse(options->rendezvous, place);
	/* any port will do that all ranks derive alike; the dynamic range of other programs starts at 32768 */
	place->port = 20000 + (int)(place->job % 12000);
	if (environment_int("MASTER_PORT", &port) && port < 65535)
		place->port = agent && !strcmp(agent, "True") ? port + 1 : port; /* torchrun's own store sits there */
	if (address && *address) {
		snprintf(place->host, sizeof(place->host), "%s", address);
		return 0;
	}
	if (launcher && !strcmp(launcher->name, "srun") &&
	    (first_slurm_host(getenv("SLURM_STEP_NODELIST"), place->host, sizeof(place->host)) ||
	     first_slurm_host(getenv("SLURM_JOB_NODELIST"), place->host, sizeof(place->host))))
		return 0;
	if ((environment_int("OMPI_COMM_WORLD_LOCAL_SIZE", &local_ranks) ||
	     environment_int("MPI_LOCALNRANKS", &local_ranks) ||
	     environment_int("MV2_COMM_WORLD_LOCAL_SIZE", &local_ranks)) &&
	    local_ranks == place->ranks) {
		snprintf(place->host, sizeof(place->host), "127.0.0.1");
		return 0;
	}
	if (place->rank == 0)
		fprintf(stderr,
			"ha perf: started by %s without a word where rank 0 is: give --rendezvous HOST:PORT, or set "
			"MASTER_ADDR and MASTER_PORT\n",
			place->launcher);
	return -EINVAL;
}

static int launched(const struct ha_options *options, const struct launcher *launcher, struct ha_place *place,
		    ha_rank_body body)
{
	place->launcher = launcher ? launcher->name : "hand";
	place->listener = -1;
	place->job = text_hash(0xcbf29ce484222325u, launcher && launcher->job ? getenv(launcher->job) : NULL);
	place->job = text_hash(place->job, getenv("SLURM_JOB_ID"));
	if (place->rank >= place->ranks || place->ranks < 1) {
		fprintf(stderr, "ha perf: rank %d of %d, as %s says, makes no sense\n", place->rank, place->ranks,
			place->launcher);
		return HA_EXIT_USAGE;
	}
	if (rendezvous_find(options, launcher, place))
		return HA_EXIT_USAGE;
	return body(options, place) == HA_EXIT_OK ? HA_EXIT_OK : HA_EXIT_WRONG;
}

/* --- forked ranks ------------------------------------------------------------------------------------------------ */

static int loopback_listener(struct ha_place *place)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);

	place->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (place->listener < 0 || bind(place->listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(place->listener, 1024) || getsockname(place->listener, (struct sockaddr *)&address, &length)) {
		fprintf(stderr, "ha perf: no socket for the ranks to meet at: %s\n", strerror(errno));
		return -errno;
	}
	snprintf(place->host, sizeof(place->host), "127.0.0.1");
	place->port = ntohs(address.sin_port);
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Says how a rank ended if it did not say so itself; returns whether the run goes on. */
static bool rank_ended(int rank, int status, bool first)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	if (code == HA_EXIT_OK || code == HA_EXIT_WRONG)
		return true;
	if (!first || code == HA_EXIT_FAILED || code == HA_EXIT_FOLLOWED)
		return false;
	if (WIFSIGNALED(status))
		fprintf(stderr, "ha perf: rank %d was killed by signal %d (%s)\n", rank, WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "ha perf: rank %d left with status %d\n", rank, code);
	return false;
}

static void kill_rest(const pid_t *pids, int ranks)
{
	for (int i = 0; i < ranks; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
}

static int watch(pid_t *pids, int ranks)
{
	int left = 0, status, rank, result = HA_EXIT_OK;
	int64_t deadline = 0;
	bool dead = false;
	pid_t pid;

	for (int i = 0; i < ranks; i++)
		left += pids[i] > 0;
	while (left) {
		pid = waitpid(-1, &status, dead ? WNOHANG : 0);
		if (!pid) {
			if (now_ms() > deadline)
				kill_rest(pids, ranks);
			usleep(5000);
			continue;
		}
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			break;
		for (rank = 0; rank < ranks && pids[rank] != pid; rank++)
			;
		if (rank == ranks)
			continue;
		pids[rank] = 0;
		left--;
		if (status)
			result = HA_EXIT_WRONG;
		/* a rank that followed another says nothing: the one it followed is still to be reaped */
		if (!rank_ended(rank, status, !dead) &&
		    !(WIFEXITED(status) && WEXITSTATUS(status) == HA_EXIT_FOLLOWED)) {
			dead = true;
			deadline = now_ms() + GRACE_MS;
		}
	}
	return result;
}

static int forked(const struct ha_options *options, struct ha_place *place, ha_rank_body body)
{
	pid_t *pids = calloc((size_t)place->ranks, sizeof(*pids)), parent = getpid();
	int result;

	place->launcher = "fork";
	place->forked = true;
	if (!pids || getrandom(&place->job, sizeof(place->job), 0) < 0 || loopback_listener(place)) {
		free(pids);
		return HA_EXIT_WRONG;
	}
	fflush(NULL);
	for (int i = 0; i < place->ranks; i++) {
		pids[i] = fork();
		if (pids[i] < 0) {
			fprintf(stderr, "ha perf: cannot fork rank %d: %s\n", i, strerror(errno));
			kill_rest(pids, i);
			break;
		}
		if (pids[i])
			continue;
		free(pids);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(HA_EXIT_FOLLOWED);
		place->rank = place->local_rank = i;
		if (i) {
			close(place->listener);
			place->listener = -1;
		}
		exit(body(options, place));
	}
	close(place->listener);
	result = watch(pids, place->ranks);
	free(pids);
	return result;
}

int ha_launch(const struct ha_options *options, ha_rank_body body)
{
	struct ha_place place = { 0 };
	const struct launcher *launcher = NULL;

	if (options->rank >= 0) {
		place.rank = place.local_rank = options->rank;
		place.ranks = options->ranks;
		return launched(options, NULL, &place, body);
	}
	if (!options->ranks)
		launcher = launcher_find(&place);
	if (launcher)
		return launched(options, launcher, &place, body);
	place.ranks = options->ranks ? options->ranks : DEFAULT_RANKS;
	return forked(options, &place, body);
}
