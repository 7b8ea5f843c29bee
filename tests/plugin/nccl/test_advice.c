/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HA_NCCL_POLICY=agent and MPIB_MODE=1: what each NIC sends is what the hint says, within 1 %, from
 * the next message on; and whatever an agent does wrong, every message arrives, over the shares
 * that there are without it, and one event says so. The agent is a thread of this test, and the
 * hints are written by the test itself.
 */
#include "tests/plugin/nccl/hinter.h"
#include "tests/plugin/nccl/rig.h"
#include "tests/plugin/nccl/sent.h"

#include <sys/wait.h>

#define MESSAGE (1 << 20)
#ifdef __SANITIZE_THREAD__ /* ten times as slow */
#define MESSAGES 4
#else
#define MESSAGES 12
#endif

static char events_path[96];

/* ---- what the plugin says ---- */

/* Events of this kind with this cause so far. */
static int count_events(const char *cause)
{
	char line[2048], want[64];
	FILE *file = fopen(events_path, "r");
	int n = 0;

	snprintf(want, sizeof(want), "\"%s\"", cause);
	while (file && fgets(line, sizeof(line), file))
		n += strstr(line, "\"advice\"") && strstr(line, want);
	if (file)
		fclose(file);
	return n;
}

static void await_events(const char *cause, int n)
{
	struct rig_deadline deadline = rig_deadline(cause);

	while (count_events(cause) < n)
		rig_pause(&deadline);
	CHECK(count_events(cause) == n, "%d events %s, not %d", count_events(cause), cause, n);
}

static struct reported {
	int followed, no_agent, stale, bad;
} reported;

static bool last_is(const char *cause)
{
	char line[2048], want[64];
	FILE *file = fopen(events_path, "r");
	bool is = false;

	snprintf(want, sizeof(want), "\"%s\"", cause);
	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, "\"advice\""))
			is = strstr(line, want) != NULL;
	if (file)
		fclose(file);
	return is;
}

static void count_reported(void)
{
	reported = (struct reported) { count_events("followed"), count_events("no_agent"),
				       count_events("agent_stale"), count_events("bad_hint") };
}

/* No event but those that were expected. */
static void check_reported(const char *when)
{
	CHECK(count_events("followed") == reported.followed &&
		      count_events("no_agent") == reported.no_agent &&
		      count_events("agent_stale") == reported.stale &&
		      count_events("bad_hint") == reported.bad,
	      "%s: %d followed, %d no_agent, %d stale, %d bad", when, count_events("followed"),
	      count_events("no_agent"), count_events("agent_stale"), count_events("bad_hint"));
}

/* ---- traffic ---- */

static struct rig rig;
static struct rig_pair pair;
static size_t message_size = MESSAGE;

/* SUP's part of the bytes of some messages is what it should be. */
static void measure_each(const char *what, double sup, int messages, void (*each)(int i))
{
	uint64_t before[2] = { rig_sent_by(rig_device(0)), rig_sent_by(rig_device(1)) }, n[2];
	double all, part, slack;

	for (int i = 0; i < messages; i++) {
		if (each)
			each(i);
		rig_exchange(&rig, &pair, message_size);
	}
	n[0] = rig_sent_by(rig_device(0)) - before[0];
	n[1] = rig_sent_by(rig_device(1)) - before[1];
	all = (double)(n[0] + n[1]);
	part = (double)n[1] / all;
	slack = rig_sent_slack(all, (double)messages * (double)message_size / rig_sent_unit());
	printf("%-40s: SUP %.4f of %.0f on the wire\n", what, part, all);
	CHECK(part > sup - slack && part < sup + slack, "%s: SUP sent %.4f of it, not %.4f", what,
	      part, sup);
}

static void measure_share(const char *what, double sup)
{
	/* an emulated machine is slow */
	measure_each(what, sup, strncmp(rig_device(0), "soft", 4) ? MESSAGES / 4 : MESSAGES, NULL);
}

static void open_plugin(bool mpib)
{
	int dev = 0;

	setenv("HA_NCCL_EVENTS", events_path, 1);
	setenv("HA_NCCL_AGENT_STALE_MS", "400", 1);
	if (mpib) {
		setenv("MPIB_HCA_SOUT", rig_device(0), 1);
		setenv("MPIB_HCA_SUP", rig_device(1), 1);
		setenv("MPIB_MODE", "1", 1);
		setenv("MPIB_OOB_IF", "lo", 1);
	} else {
		setenv("HA_NCCL_POLICY", "agent", 1);
	}
	rig_open(&rig, 1, NULL);
	if (!mpib)
		OK(rig.plugin.abi->fuse(&rig.plugin, &dev, 2, (int[]) { 0, 1 }));
	rig_pair_open_on(&rig, &pair, dev);
}

/* Above 1024 is 1024, as MPIB's document says. */
static void follow_each_share(void)
{
	static const uint32_t shares[] = {
		0, 1024, 256, 512, 768, 1, 1023, 1025, 646, UINT32_MAX, 0
	};
	char name[64];

	for (unsigned i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		hinter_write(shares[i]);
		snprintf(name, sizeof(name), "hint %u", shares[i]);
		measure_share(name, shares[i] < 1024 ? shares[i] / 1024.0 : 1);
		reported.followed += i == 0;
		check_reported(name);
	}
}

/* MPIB's document knows no gate: NCCL's usual chunk, and less than a rail takes in a round trip. */
static void follow_for_every_size(void)
{
	static const size_t sizes[] = { 128 << 10, 16 << 10, 4 << 10 };
	static const uint32_t shares[] = { 256, 512, 768 };
	char name[64];

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (unsigned k = 0; k < sizeof(shares) / sizeof(*shares); k++) {
			message_size = sizes[i];
			hinter_write(shares[k]);
			snprintf(name, sizeof(name), "hint %u, messages of %zu bytes", shares[k],
				 sizes[i]);
			measure_each(name, shares[k] / 1024.0, 2 * MESSAGES, NULL);
		}
	message_size = MESSAGE;
	check_reported("small messages");
}

static void another_hint(int i)
{
	hinter_write(i % 4 ? 1024 : 0);
}

/* A change between any two messages counts for the second. */
static void change_with_each_message(void)
{
	measure_each("another hint for each message", 0.75, 4 * MESSAGES, another_hint);
	check_reported("another hint for each message");
}

/* The shares without an agent, then the hint again: an event each. */
static void mend_hint(const char *what, double without)
{
	measure_share(what, without);
	reported.bad++;
	check_reported(what);
	hinter.shm->entries[HINTER_SLOT].seq &= ~1u;
	hinter_write(768);
	measure_share("mended", 0.75);
	reported.followed++;
	check_reported("mended");
}

static void bad_advice(double without)
{
	struct mpib_hint_entry *e = &hinter.shm->entries[HINTER_SLOT];

	__atomic_store_n(&e->seq, e->seq | 1, __ATOMIC_RELEASE);
	mend_hint("its writer died over it", without);
	hinter_write_foreign();
	mend_hint("another flow's source", without);
	mpib_hint_put(e, 512, 0, 0);
	mend_hint("the slot is free", without);
}

static void *scribble_hints(void *stop)
{
	struct mpib_hint_entry *e = &hinter.shm->entries[HINTER_SLOT];

	/* The words of an entry change all the time, and its number is even for moments only. */
	for (uint32_t i = 0; !atomic_load((atomic_bool *)stop); i++) {
		__atomic_store_n(&e->seq, i | 1, __ATOMIC_RELEASE);
		__atomic_store_n(&e->sup_bw, i, __ATOMIC_RELEASE);
		__atomic_store_n(&e->sup_bw, 768, __ATOMIC_RELEASE);
		__atomic_store_n(&e->seq, (i | 1) + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Never a share but the fallback's and the hint's; never a stall. */
static void read_torn_hints(double without)
{
	atomic_bool stop = false;
	pthread_t thread;

	hinter_write(768);
	CHECK(!pthread_create(&thread, NULL, scribble_hints, &stop), "thread");
	for (int i = 0; i < 2 * MESSAGES; i++)
		rig_exchange(&rig, &pair, MESSAGE);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	hinter_write(768);
	measure_share("after much scribbling", 0.75);
	CHECK(last_is("followed"), "the last event is not the state");
	count_reported();
	hinter_write_foreign();
	mend_hint("another flow's hint after all that", without);
}

/* A heartbeat that goes on and then stops; and goes on again. */
static void agent_heartbeat(double without)
{
	struct rig_deadline deadline = rig_deadline("the heartbeat stands still");

	hinter_write(768);
	for (uint32_t heartbeat = 1; heartbeat < 20; heartbeat++) {
		__atomic_store_n(&hinter.shm->header.beat, heartbeat, __ATOMIC_RELEASE);
		usleep(50000);
		rig_exchange(&rig, &pair, MESSAGE);
	}
	while (!last_is("agent_stale"))
		rig_pause(&deadline);
	count_reported(); /* a busy machine may have missed heartbeats before */
	measure_share("the heartbeat stands still", without);
	check_reported("the heartbeat stands still");
	/* an agent without a heartbeat took over */
	__atomic_store_n(&hinter.shm->header.beat, 0, __ATOMIC_RELEASE);
	await_events("followed", ++reported.followed);
	measure_share("another agent", 0.75);
	check_reported("another agent");
}

static void remove_hints(double without)
{
	char away[128];

	snprintf(away, sizeof(away), "%s.away", hinter.hints_path);
	CHECK(!rename(hinter.hints_path, away), "rename");
	await_events("no_agent", ++reported.no_agent);
	measure_share("the file is gone", without);
	check_reported("the file is gone");
	CHECK(!rename(away, hinter.hints_path), "rename");
	await_events("followed", ++reported.followed);
	measure_share("the file is back", 0.75);
	CHECK(!chmod(hinter.hints_path, 0666), "chmod");
	await_events("no_agent", ++reported.no_agent);
	measure_share("others may write to it", without);
	CHECK(!chmod(hinter.hints_path, 0644), "chmod");
	await_events("followed", ++reported.followed);
	measure_share("trusted again", 0.75);
	check_reported("the end");
}

static void run_test(bool mpib)
{
	struct rig_deadline deadline = rig_deadline("registration");
	double without = mpib ? 0 : 0.5;
	unsigned before;

	hinter_prepare();
	snprintf(events_path, sizeof(events_path), "%s/events", hinter.dir);
	open_plugin(mpib);
	measure_share("no agent was ever there", without);
	await_events("no_agent", ++reported.no_agent);
	hinter_make_hints();
	await_events("followed", ++reported.followed);
	CHECK(hinter.registered == 0, "nobody listens");
	measure_share("a file of hints, nobody gives slots", without);
	hinter.full = true;
	hinter_start();
	await_events("no_slot", 1);
	measure_share("all slots are taken", without);
	hinter.full = false;
	while (hinter.registered < 2) /* it asks again, every five seconds */
		rig_pause(&deadline);
	await_events("followed", ++reported.followed);
	CHECK(count_events("no_slot") == 1, "%d events, not one", count_events("no_slot"));
	before = hinter.registered;
	/* The slot is free until the agent has written it: the connection's hint belongs to
	 * nobody. */
	reported.bad = count_events("bad_hint");
	hinter_write(0);
	follow_each_share();
	follow_for_every_size();
	change_with_each_message();
	hinter_write(768);
	measure_share("hint 768", 0.75);
	bad_advice(without);
	read_torn_hints(without);
	agent_heartbeat(without);
	remove_hints(without);
	CHECK(hinter.registered == before, "%u registrations of one connection", hinter.registered);
	rig_pair_close(&rig, &pair);
	deadline = rig_deadline("deregistration");
	while (!hinter.deregistered)
		rig_pause(&deadline);
	rig_close(&rig);
	unlink(events_path);
	hinter_remove();
}

/* A process each: variables are read once. */
int main(void)
{
	for (int mpib = 0; mpib < 2; mpib++) {
		int status;
		pid_t child = fork();

		if (!child) {
			run_test(mpib);
			fflush(stdout);
			_exit(0);
		}
		CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%s",
		      mpib ? "MPIB" : "fused");
	}
	return 0;
}
