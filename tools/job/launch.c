/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/socket.h"
#include "tools/job/cues.h"
#include "tools/job/launch.h"
#include "tools/job/rendezvous.h"

#define DEFAULT_RANKS 2
#define GRACE_MS 3000 /* how long ranks may take to leave after one of them died */

/* ---- the launchers' environments ---- */

/*
 * Who sets what. Asked in this order: mpirun and srun may start a torchrun, never the other way
 * round, so the innermost comes first; PMI variables are also set by srun and by Open MPI, so these
 * two come last.
 */
static const struct launcher {
	const char *name, *rank, *ranks, *local_rank, *job;
} launchers[] = {
	{ "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID" },
	{ "Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
	  "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_MCA_ess_base_jobid" },
	{ "MVAPICH's mpirun", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
	  "MV2_COMM_WORLD_LOCAL_RANK", NULL },
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

		if (!environment_int(l->rank, &place->rank) ||
		    !environment_int(l->ranks, &place->ranks))
			continue;
		place->local_rank = place->rank;
		(void)environment_int(l->local_rank, &place->local_rank);
		return l;
	}
	return NULL;
}

static uint64_t text_hash(uint64_t h, const char *text)
{
	return text ? ha_hash_text(h, text) : h;
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

static int rendezvous_parse(const char *program, const char *text, struct ha_place *place)
{
	const char *colon = strrchr(text, ':');
	char *end;
	long port = colon ? strtol(colon + 1, &end, 10) : 0;
	size_t length = colon ? (size_t)(colon - text) : 0;

	if (!colon || *end || port < 1 || port > 65535 || !length ||
	    length >= sizeof(place->host)) {
		fprintf(stderr, "%s: --rendezvous takes HOST:PORT, not '%s'\n", program, text);
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

/* Any port will do that all ranks derive alike; the dynamic range of other programs is at 32768. */
static int rendezvous_port(const struct ha_place *place)
{
	const char *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");
	int port = 0;

	if (!environment_int("MASTER_PORT", &port) || port >= 65535)
		return 20000 + (int)(place->job % 12000);
	/* torchrun's own store sits there */
	return agent && !strcmp(agent, "True") ? port + 1 : port;
}

static bool is_slurm(const struct launcher *launcher)
{
	return launcher && !strcmp(launcher->name, "srun");
}

/* All ranks run on this machine, as mpirun says. */
static bool all_are_local(int ranks)
{
	static const char *const variables[] = { "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
						 "MV2_COMM_WORLD_LOCAL_SIZE" };
	int local_ranks = 0;

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		if (environment_int(variables[i], &local_ranks))
			return local_ranks == ranks;
	return false;
}

/*
 * Where rank 0 is: the option, MASTER_ADDR and MASTER_PORT, Slurm's list of nodes, or this very
 * machine.
 */
static int rendezvous_find(const struct ha_launch_options *options, const struct launcher *launcher,
			   struct ha_place *place)
{
	const char *address = getenv("MASTER_ADDR");

	if (options->rendezvous)
		return rendezvous_parse(options->program, options->rendezvous, place);
	place->port = rendezvous_port(place);
	if (address && *address) {
		snprintf(place->host, sizeof(place->host), "%s", address);
		return 0;
	}
	if (is_slurm(launcher) &&
	    (first_slurm_host(getenv("SLURM_STEP_NODELIST"), place->host, sizeof(place->host)) ||
	     first_slurm_host(getenv("SLURM_JOB_NODELIST"), place->host, sizeof(place->host))))
		return 0;
	if (all_are_local(place->ranks)) {
		snprintf(place->host, sizeof(place->host), "127.0.0.1");
		return 0;
	}
	if (place->rank == 0)
		fprintf(stderr,
			"%s: started by %s, which does not say where rank 0 is: give --rendezvous "
			"HOST:PORT, or set "
			"MASTER_ADDR and MASTER_PORT\n",
			options->program, place->launcher);
	return -EINVAL;
}

static int run_launched(const struct ha_launch_options *options, const struct launcher *launcher,
			struct ha_place *place, ha_rank_body body, const void *context)
{
	place->launcher = launcher ? launcher->name : "hand";
	place->listener = -1;
	if (options->cues_count) {
		fprintf(stderr, "%s: --at needs ranks that are forked here: --ranks N\n",
			options->program);
		return HA_EXIT_USAGE;
	}
	place->job =
		text_hash(HA_HASH_START, launcher && launcher->job ? getenv(launcher->job) : NULL);
	place->job = text_hash(place->job, getenv("SLURM_JOB_ID"));
	if (place->rank >= place->ranks || place->ranks < 1) {
		fprintf(stderr, "%s: rank %d of %d, as %s says, makes no sense\n", options->program,
			place->rank, place->ranks, place->launcher);
		return HA_EXIT_USAGE;
	}
	if (rendezvous_find(options, launcher, place))
		return HA_EXIT_USAGE;
	return body(context, place) == HA_EXIT_OK ? HA_EXIT_OK : HA_EXIT_WRONG;
}

/* ---- forked ranks ---- */

static int loopback_listener(const char *program, struct ha_place *place)
{
	union ha_sockaddr address = { .in = { .sin_family = AF_INET,
					      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };

	place->listener = ha_socket_listen(&address, &address);
	if (place->listener < 0) {
		fprintf(stderr, "%s: no socket for the ranks to meet at: %s\n", program,
			strerror(-place->listener));
		return place->listener;
	}
	snprintf(place->host, sizeof(place->host), "127.0.0.1");
	place->port = ntohs(address.in.sin_port);
	return 0;
}

/* The forked ranks, from their parent's side. */
struct family {
	const char *program;
	int ranks, left;
	pid_t *pids;          /* 0: reaped */
	struct ha_cues *cues; /* NULL: none */
	char *errors;         /* HA_LAST_ERROR_SIZE bytes of each rank, shared */
	int result;
	bool reported;    /* a death has been reported: what the others say are its consequences */
	int complainer;   /* the first rank that failed with a reason of its own; -1: none */
	int follower;     /* a rank that left because of another one; -1: none */
	int quitter;      /* the first rank that ended as if all were well; -1: none */
	int64_t deadline; /* when those that are left are killed; 0: not yet */
	bool killed;
};

/*
 * A rank that was killed is reported at once, a failure only when all are gone: it may be the
 * consequence of a death not yet seen.
 */
static void rank_ended(struct family *f, int rank, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	if (code == HA_EXIT_OK) {
		if (f->quitter < 0)
			f->quitter = rank;
		return;
	}
	f->result = HA_EXIT_WRONG;
	if (code == HA_EXIT_WRONG)
		return;
	if (code == HA_EXIT_FAILED && f->complainer < 0)
		f->complainer = rank;
	if (code == HA_EXIT_FOLLOWED)
		f->follower = rank;
	if (code != HA_EXIT_FAILED && code != HA_EXIT_FOLLOWED && !f->reported && !f->killed) {
		if (WIFSIGNALED(status))
			fprintf(stderr, "%s: rank %d was killed by signal %d (%s)\n", f->program,
				rank, WTERMSIG(status), strsignal(WTERMSIG(status)));
		else
			fprintf(stderr, "%s: rank %d left with status %d\n", f->program, rank,
				code);
		f->reported = true;
	}
	if (!f->deadline)
		f->deadline = ha_monotonic_ms() + GRACE_MS;
}

static void kill_rest(struct family *f)
{
	f->killed = true;
	for (int i = 0; i < f->ranks; i++)
		if (f->pids[i] > 0)
			kill(f->pids[i], SIGKILL);
}

/*
 * What the ranks that failed said, when all are gone. One that complains may be another's victim
 * that learned of its end too late.
 */
static void report_reason(const struct family *f)
{
	if (f->complainer >= 0 && f->quitter >= 0)
		fprintf(stderr, "%s: rank %d: %s; rank %d ended as if all were well\n", f->program,
			f->complainer, f->errors + f->complainer * HA_LAST_ERROR_SIZE, f->quitter);
	else if (f->complainer >= 0)
		fprintf(stderr, "%s: rank %d: %s\n", f->program, f->complainer,
			f->errors + f->complainer * HA_LAST_ERROR_SIZE);
	else if (f->follower >= 0)
		fprintf(stderr, "%s: rank %d lost another rank, which ended as if all were well\n",
			f->program, f->follower);
}

/* Reaps all ranks; returns the program's exit status. */
static int reap_ranks(struct family *f)
{
	int status, rank;
	pid_t pid;

	while (f->left) {
		pid = waitpid(-1, &status, f->deadline ? WNOHANG : 0);
		if (!pid) {
			if (ha_monotonic_ms() > f->deadline)
				kill_rest(f);
			usleep(5000);
			continue;
		}
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			break;
		for (rank = 0; rank < f->ranks && f->pids[rank] != pid; rank++)
			;
		if (rank == f->ranks) {
			ha_cues_reaped(f->cues, pid);
			continue;
		}
		f->pids[rank] = 0;
		f->left--;
		rank_ended(f, rank, status);
	}
	if (!f->reported)
		report_reason(f);
	return f->result;
}

/* In the child: becomes the rank; does not return. */
static void rank_become(const struct ha_launch_options *options, struct ha_place *place, int rank,
			pid_t parent, struct family *f, ha_rank_body body, const void *context)
{
	free(f->pids);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(HA_EXIT_FOLLOWED);
	place->rank = place->local_rank = rank;
	place->last_error = f->errors + rank * HA_LAST_ERROR_SIZE;
	ha_cues_rank(f->cues, rank);
	if (rank) {
		close(place->listener);
		place->listener = -1;
	}
	exit(body(context, place));
}

/* All ranks, or as many as could be forked, which are ended then. */
static void ranks_fork(const struct ha_launch_options *options, struct ha_place *place,
		       struct family *f, ha_rank_body body, const void *context)
{
	pid_t parent = getpid();

	for (int i = 0; i < place->ranks; i++) {
		f->pids[i] = fork();
		if (!f->pids[i])
			rank_become(options, place, i, parent, f, body, context);
		if (f->pids[i] < 0) {
			fprintf(stderr, "%s: cannot fork rank %d: %s\n", options->program, i,
				strerror(errno));
			f->result = HA_EXIT_WRONG;
			f->reported = true;
			kill_rest(f);
			return;
		}
		f->left++;
	}
}

static int run_forked(const struct ha_launch_options *options, struct ha_place *place,
		      ha_rank_body body, const void *context)
{
	struct family f = { .program = options->program,
			    .ranks = place->ranks,
			    .complainer = -1,
			    .follower = -1,
			    .quitter = -1 };
	size_t errors_size = (size_t)place->ranks * HA_LAST_ERROR_SIZE;

	place->launcher = "fork";
	place->forked = true;
	f.pids = calloc((size_t)place->ranks, sizeof(*f.pids));
	f.errors =
		mmap(NULL, errors_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!f.pids || f.errors == MAP_FAILED ||
	    getrandom(&place->job, sizeof(place->job), 0) < 0 ||
	    loopback_listener(options->program, place)) {
		free(f.pids);
		return HA_EXIT_WRONG;
	}
	place->cues = f.cues = ha_cues_open(options);
	if (options->cues_count && !f.cues)
		return HA_EXIT_WRONG;
	fflush(NULL);
	ranks_fork(options, place, &f, body, context);
	close(place->listener);
	if (f.result == HA_EXIT_OK && ha_cues_fork(f.cues, f.pids, place->ranks)) {
		f.result = HA_EXIT_WRONG;
		f.reported = true;
		kill_rest(&f);
	}
	if (options->interruptible)
		signal(SIGINT, SIG_IGN); /* rank 0 ends the measurement, the others follow */
	f.result = reap_ranks(&f);
	ha_cues_close(f.cues);
	munmap(f.errors, errors_size);
	free(f.pids);
	return f.result;
}

int ha_launch(const struct ha_launch_options *options, ha_rank_body body, const void *context)
{
	struct ha_place place = { 0 };
	const struct launcher *launcher = NULL;

	if (options->rank >= 0) {
		place.rank = place.local_rank = options->rank;
		place.ranks = options->ranks;
		return run_launched(options, NULL, &place, body, context);
	}
	if (!options->ranks)
		launcher = launcher_find(&place);
	if (launcher)
		return run_launched(options, launcher, &place, body, context);
	place.ranks = options->ranks ? options->ranks : DEFAULT_RANKS;
	return run_forked(options, &place, body, context);
}
