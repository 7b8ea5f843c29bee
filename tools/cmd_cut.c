/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_cut.c - ha cut, heal, drop, delay, reorder, duplicate, blackhole, rate, speed, srq-error,
 * kill, restore: hurt a software NIC from outside its process
 */
#include "base/number.h"
#include "base/options.h"
#include "softroce/control.h"
#include "softroce/folder.h"
#include "softroce/limit.h"
#include "tools/ha.h"
#include "tools/soft_job.h"
#include "tools/soft_name.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the command line asks for; apply() puts it into the faults of one device. */
struct request {
	bool tx, rx; /* directions; neither named = both */
	uint32_t ppm;
	uint32_t mbps;
	uint64_t time_ns, jitter_ns, bytes_per_ms;
	const char *device; /* its name when it is back; NULL: the old one */
	void (*apply)(struct sr_fault_dir *dir, const struct request *request);
};

struct fault_command {
	const char *name, *arguments, *help;
	/* what follows the device */
	enum { WHOLE, RATE, TIME, RATE_TIME, DIRECTION, SPEED, NEGOTIATE, NAME } shape;
	void (*whole)(struct sr_faults *faults, void *arg);
	void (*apply)(struct sr_fault_dir *dir, const struct request *request);
	const char *done; /* what the line of a success says */
};

static void cut_apply(struct sr_faults *faults, void *arg)
{
	faults->cut = 1;
}

/* A dead device stays dead: its queue pairs are gone. */
static void heal_apply(struct sr_faults *faults, void *arg)
{
	struct sr_faults healed = { .kill = faults->kill,
				    .srq_errors = faults->srq_errors,
				    .restore = faults->restore };

	memcpy(healed.restore_as, faults->restore_as, sizeof(healed.restore_as));
	*faults = healed;
}

static void kill_apply(struct sr_faults *faults, void *arg)
{
	faults->kill = 1;
	faults->restore = 0;
}

static void restore_apply(struct sr_faults *faults, void *arg)
{
	const struct request *request = arg;

	if (!faults->kill)
		return; /* it works */
	faults->restore = 1;
	snprintf(faults->restore_as, sizeof(faults->restore_as), "%s",
		 request->device ? request->device : "");
}

static void srq_apply(struct sr_faults *faults, void *arg)
{
	faults->srq_errors++;
}

static void negotiate_apply(struct sr_faults *faults, void *arg)
{
	const struct request *request = arg;

	faults->speed = request->mbps;
}

static void drop_apply(struct sr_fault_dir *dir, const struct request *request)
{
	dir->drop_ppm = request->ppm;
}

static void delay_apply(struct sr_fault_dir *dir, const struct request *request)
{
	dir->delay_ns = request->time_ns;
	dir->jitter_ns = request->jitter_ns;
}

static void reorder_apply(struct sr_fault_dir *dir, const struct request *request)
{
	dir->reorder_ppm = request->ppm;
	dir->reorder_ns = request->time_ns;
}

static void duplicate_apply(struct sr_fault_dir *dir, const struct request *request)
{
	dir->dup_ppm = request->ppm;
}

static void blackhole_apply(struct sr_fault_dir *dir, const struct request *request)
{
	dir->blackhole = 1;
}

static void speed_apply(struct sr_faults *faults, void *arg)
{
	const struct request *request = arg;

	faults->rate = request->bytes_per_ms;
}

static const struct fault_command commands[] = {
	{ "cut", "", "pull the cable: the port goes down", WHOLE, cut_apply, NULL, "cut" },
	{ "heal", "", "undo every fault but kill", WHOLE, heal_apply, NULL, "healed" },
	{ "kill", "", "the device fails and is listed no more, until `ha restore`", WHOLE,
	  kill_apply, NULL, "killed" },
	{ "restore", " [NEW-NAME]",
	  "a killed device is listed again, as after a reset, by its old name or another; what had "
	  "it open must open it anew",
	  NAME, restore_apply, NULL, "back for who lists devices" },
	{ "srq-error", "", "its shared receive queues fail, which only new ones mend", WHOLE,
	  srq_apply, NULL, "shared receive queues failed" },
	{ "speed", " MBIT/S",
	  "the port goes down and comes back with this speed, as after negotiating its link again; "
	  "0: its own",
	  NEGOTIATE, negotiate_apply, NULL, "negotiated again" },
	{ "drop", " PERCENT [tx|rx]", "lose packets", RATE, NULL, drop_apply, "dropping" },
	{ "duplicate", " PERCENT [tx|rx]", "deliver packets twice", RATE, NULL, duplicate_apply,
	  "duplicating" },
	{ "reorder", " PERCENT [TIME] [tx|rx]",
	  "hold packets back by TIME (default 20us) while later ones overtake", RATE_TIME, NULL,
	  reorder_apply, "reordering" },
	{ "delay", " TIME [JITTER] [tx|rx]", "delay every packet by TIME and up to JITTER more",
	  TIME, NULL, delay_apply, "delaying" },
	{ "blackhole", " tx|rx", "packets of one direction vanish, the port stays up", DIRECTION,
	  NULL, blackhole_apply, "swallowing packets" },
	{ "rate", " MB/S",
	  "let at most so many megabytes per second leave it, instead of SOFTROCE_RATE; 0: as "
	  "SOFTROCE_RATE has it",
	  SPEED, speed_apply, NULL, "limited" },
};

static const struct fault_command *command_find(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* "1", "0.5", "1%" -> parts per million. */
static bool rate_parse(const char *text, uint32_t *ppm)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || (strcmp(end, "") && strcmp(end, "%")) ||
	    !(percent >= 0 && percent <= 100))
		return false;
	*ppm = (uint32_t)(percent * 10000 + 0.5);
	return true;
}

static bool time_parse(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	double value = strtod(text, &end);

	if (end == text || !(value >= 0))
		return false;
	for (int i = 0; i < 4; i++)
		if (!strcmp(end, units[i].unit) &&
		    value * units[i].ns <= (double)SR_CONTROL_DELAY_MAX) {
			*ns = (uint64_t)(value * units[i].ns);
			return true;
		}
	*ns = 0;
	return !*end && value == 0;
}

/* The line about an argument that makes no sense; false. `text` NULL: it is missing. */
static bool refuse_argument(const struct fault_command *command, const char *takes,
			    const char *text)
{
	if (text)
		fprintf(stderr, "ha %s: %s, not '%s'; `ha %s --help` explains\n", command->name,
			takes, text, command->name);
	else
		fprintf(stderr, "ha %s: %s is missing; `ha %s --help` explains\n", command->name,
			takes, command->name);
	return false;
}

static bool take_rate(const struct fault_command *command, const char *text, uint32_t *ppm)
{
	if (!text)
		return refuse_argument(command, "PERCENT", NULL);
	return rate_parse(text, ppm) ||
	       refuse_argument(command, "PERCENT is a number from 0 to 100, as in 1 or 0.5%", text);
}

static bool take_time(const struct fault_command *command, const char *what, const char *text,
		      uint64_t *ns)
{
	char takes[64];

	if (!text)
		return refuse_argument(command, what, NULL);
	snprintf(takes, sizeof(takes), "%s is from 0 to 10s with its unit, as in 20us, 5ms or 1s",
		 what);
	return time_parse(text, ns) || refuse_argument(command, takes, text);
}

static bool take_speed(const struct fault_command *command, const char *text,
		       uint64_t *bytes_per_ms)
{
	int64_t rate;

	if (!text)
		return refuse_argument(command, "MB/S", NULL);
	rate = *text && !strchr(text, ',') ? sr_limit_parse(text, 0) : -1;
	*bytes_per_ms = (uint64_t)rate;
	return rate >= 0 || refuse_argument(command, "MB/S is a number from 0 to 1000000", text);
}

static bool take_name(const struct fault_command *command, const char *text, const char **name)
{
	*name = text;
	return !text || sr_device_name_valid(text) ||
	       refuse_argument(command, "NEW-NAME is letters, digits, '_' and '-', a letter first",
			       text);
}

static bool take_mbps(const struct fault_command *command, const char *text, uint32_t *mbps)
{
	uint64_t value;

	if (!text)
		return refuse_argument(command, "MBIT/S", NULL);
	if (!ha_number_parse(text, 0, 4000000, &value))
		return refuse_argument(command, "MBIT/S is a number from 0 to 4000000", text);
	*mbps = (uint32_t)value;
	return true;
}

/* A direction at the end of the arguments, taken off them. */
static void direction_take(struct request *request, int *argc, const char **argv)
{
	const char *last = *argc > 0 ? argv[*argc - 1] : "";

	request->tx = !strcmp(last, "tx");
	request->rx = !strcmp(last, "rx");
	*argc -= request->tx || request->rx;
}

/* The words that the command's shape asks for; *used gets their number. */
static bool arguments_take(const struct fault_command *command, const char *const argument[3],
			   struct request *request, int *used)
{
	uint64_t *time_ns = &request->time_ns;

	*used = 1;
	switch (command->shape) {
	case SPEED:
		return take_speed(command, argument[0], &request->bytes_per_ms);
	case NEGOTIATE:
		return take_mbps(command, argument[0], &request->mbps);
	case NAME:
		*used = argument[0] != NULL;
		return take_name(command, argument[0], &request->device);
	case RATE:
		return take_rate(command, argument[0], &request->ppm);
	case RATE_TIME:
		*used += argument[1] != NULL;
		return take_rate(command, argument[0], &request->ppm) &&
		       (!argument[1] || take_time(command, "TIME", argument[1], time_ns));
	case TIME:
		*used += argument[1] != NULL;
		return take_time(command, "TIME", argument[0], time_ns) &&
		       (!argument[1] ||
			take_time(command, "JITTER", argument[1], &request->jitter_ns));
	default:
		*used = 0;
		return true;
	}
}

static bool has_directions(const struct fault_command *command)
{
	switch (command->shape) {
	case WHOLE:
	case SPEED:
	case NEGOTIATE:
	case NAME:
		return false;
	default:
		return true;
	}
}

/*
 * What follows the device; false after a line that says what makes no sense. argv ends with NULL.
 */
static bool request_parse(const struct fault_command *command, int argc, const char **argv,
			  struct request *request)
{
	const bool directed = has_directions(command);
	const int given = argc;
	const char *argument[3] = { NULL };
	int used;

	if (directed)
		direction_take(request, &argc, argv);
	for (int i = 0; i < argc && i < 3; i++)
		argument[i] = argv[i];
	if (command->shape == DIRECTION && argc == given)
		return refuse_argument(command, "the direction is tx or rx",
				       argument[0] ? argument[0] : "");
	if (!arguments_take(command, argument, request, &used))
		return false;
	if (used < argc)
		return refuse_argument(command,
				       directed ? "after that comes tx, rx or nothing"
						: "nothing follows",
				       argv[used]);
	return true;
}

static void request_apply(struct sr_faults *faults, void *arg)
{
	const struct request *request = arg;

	if (!request->rx)
		request->apply(&faults->tx, request);
	if (!request->tx)
		request->apply(&faults->rx, request);
}

#define WORDS_MAX 5

/* Whom a command reaches among the processes that have the device, and what follows the device. */
struct reach {
	uint64_t job, pid; /* 0: not named */
	bool all;
	const char *word[WORDS_MAX]; /* the device first */
	unsigned words;
};

/* Keeps the devices of one process; returns how many are left. */
static int pid_keep(struct sr_control_entry *list, int n, uint64_t pid)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (list[i].page.pid == pid)
			list[kept++] = list[i];
	return kept;
}

/*
 * Leaves in the list what the command reaches and says which jobs it does not; returns how many are
 * left.
 */
static int reach_apply(const char *command, const char *selector, const struct reach *reach,
		       struct sr_control_entry *list, int n)
{
	pid_t job = reach->job ? (pid_t)reach->job : ha_soft_job_choose(list, n);
	struct sr_control_entry *all;
	int kept;

	if (reach->all || selector[strcspn(selector, "@:")])
		return n;
	if (reach->pid)
		return pid_keep(list, n, reach->pid);
	all = malloc((size_t)n * sizeof(*all));
	if (all)
		memcpy(all, list, (size_t)n * sizeof(*all));
	kept = ha_soft_job_keep(list, n, job);
	if (all && kept && kept < n) {
		printf("ha %s: reaches ", command);
		ha_soft_job_print(all, n, ha_soft_job_of((pid_t)list[0].page.pid), stdout);
	}
	free(all);
	return kept;
}

/* Of whom no process has the device. */
static const char *describe_reach(const struct reach *reach)
{
	if (reach->job)
		return " of that job";
	return reach->pid ? " of that number" : "";
}

/* Why a device has not said that the change is in force. */
static const char *describe_error(int err)
{
	switch (err) {
	case -ETIMEDOUT:
		return "does not answer: its process is stopped; the change takes effect when it "
		       "goes on";
	case -EBUSY:
		return "has not answered for a minute: its process gets no processor, or hangs; "
		       "the change takes effect when it answers";
	default:
		return strerror(-err);
	}
}

/* Apply to every device the selector means; the exit status. */
static int command_apply(const struct fault_command *command, const char *selector,
			 const struct reach *reach, struct request *request)
{
	void (*change)(struct sr_faults *, void *) =
		command->whole ? command->whole : request_apply;
	struct sr_control_entry *list;
	int n, status = 0;

	list = sr_control_list(selector, &n);
	if (n < 0)
		return ha_soft_complain(command->name, n);
	n = n ? reach_apply(command->name, selector, reach, list, n) : 0;
	if (!n) {
		fprintf(stderr,
			"ha %s: no process%s has a device '%s' open; `ha soft` lists them\n",
			command->name, describe_reach(reach), selector);
		free(list);
		return 1;
	}
	for (int i = 0; i < n; i++) {
		int err = sr_control_change(&list[i], change, request);
		char name[128];

		ha_soft_name(&list[i], name, sizeof(name));
		if (!err && command->shape == NAME && !list[i].page.dead)
			err = -EALREADY;
		if (err == -ESRCH)
			printf("%s: gone\n", name);
		else if (err == -EALREADY)
			fprintf(stderr, "ha %s: %s has not been killed\n", command->name, name);
		else if (err)
			fprintf(stderr, "ha %s: %s %s\n", command->name, name, describe_error(err));
		else
			printf("%s: %s\n", name, command->done);
		status |= err && err != -ESRCH;
	}
	free(list);
	return status;
}

#define HA_TARGET struct reach

static const struct ha_option rows[] = {
	{ "job", 0, "JOB",
	  "of this job, by its number or that of one of its processes; `ha soft` lists them",
	  HA_NUMBER(job, 1, INT32_MAX) },
	{ "pid", 0, "PID", "in this process", HA_NUMBER(pid, 1, INT32_MAX) },
	{ "all", 0, NULL, "in every process of this user", HA_FLAG(all) },
	{ 0 },
};

static const struct ha_option operands[] = {
	{ "DEVICE", 0, NULL,
	  "soft0, in every process of the newest job of this user; soft0@127.1.0.3 or soft0:PID, "
	  "in one",
	  HA_LIST(word, words, WORDS_MAX) },
	{ 0 },
};

static const char notes[] = "tx: what the device sends, rx: what is sent to it; neither: both. "
			    "PERCENT as 1, 0.5%; TIME as 20us, "
			    "5ms, 1s. A value of 0 takes the fault away again.";

int ha_cmd_cut(int argc, char **argv)
{
	const struct fault_command *command = command_find(argv[0]);
	struct request request = { .apply = command->apply };
	struct reach reach = { 0 };
	char name[32], synopsis[128];
	const struct ha_program program = {
		.name = name,
		.synopsis = synopsis,
		.about = command->help,
		.options = { rows },
		.operands = operands,
		.needed = 1,
		.notes = has_directions(command) ? notes : NULL,
	};
	int result;

	snprintf(name, sizeof(name), "ha %s", command->name);
	snprintf(synopsis, sizeof(synopsis), "[--job JOB | --pid PID | --all] DEVICE%s",
		 command->arguments);
	result = ha_options_parse(&program, argc, argv, &reach);
	if (result)
		return result - 1;
	if (reach.all + (reach.job != 0) + (reach.pid != 0) > 1)
		return ha_program_refuse(&program, "--job, --pid and --all exclude each other") - 1;
	if (!request_parse(command, (int)reach.words - 1, reach.word + 1, &request))
		return 2;
	return command_apply(command, reach.word[0], &reach, &request);
}
