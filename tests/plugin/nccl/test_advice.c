/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HA_NCCL_POLICY=agent and MPIB_MODE=1: what each NIC sends is what the hint says, within 1 %, from the next message on; and
 * whatever an agent does wrong, every message arrives, over the shares that there are without it, and one event says so.
 * The agent is a thread of this test, and the hints are written by the test itself.
 */
#include "include/mpib_agent_iface.h"
#include "tests/plugin/nccl/rig.h"
#include "tests/plugin/nccl/sent.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define MESSAGE (1 << 20)
#ifdef __SANITIZE_THREAD__ /* ten times as slow */
#define MESSAGES 4
#else
#define MESSAGES 24
#endif
#define SLOT 17

static char dir[64], socket_path[96], hints_path[96], events_path[96];
static struct mpib_hint_shm *shm;
static atomic_uint registered, deregistered;
static atomic_bool full; /* the agent has no slot left */
static struct mpib_register flow;

/* ---- the agent ---- */

static bool answer(int fd)
{
	union {
		struct mpib_msg_header header;
		struct mpib_register reg;
		struct mpib_deregister dereg;
	} m;
	struct mpib_register_response yes = { { MPIB_REG_MAGIC, sizeof(yes), MPIB_MSG_RESPONSE, 0 }, MPIB_STATUS_OK, SLOT };
	struct mpib_deregister_response bye = { { MPIB_REG_MAGIC, sizeof(bye), MPIB_MSG_RESPONSE, 0 }, MPIB_STATUS_OK };

	if (recv(fd, &m, sizeof(m.header), MSG_WAITALL) != sizeof(m.header) || m.header.length > sizeof(m))
		return false;
	if (recv(fd, (char *)&m + sizeof(m.header), m.header.length - sizeof(m.header), MSG_WAITALL) <= 0)
		return false;
	if (m.header.type == MPIB_MSG_DEREGISTER) {
		atomic_fetch_add(&deregistered, 1);
		return send(fd, &bye, sizeof(bye), MSG_NOSIGNAL) == sizeof(bye);
	}
	flow = m.reg;
	if (full) {
		yes.status = MPIB_STATUS_NO_SLOT;
		yes.hint_slot = MPIB_NO_SLOT;
	}
	atomic_fetch_add(&registered, 1);
	return send(fd, &yes, sizeof(yes), MSG_NOSIGNAL) == sizeof(yes);
}

static void *agent_main(void *arg)
{
	int listener = *(int *)arg, fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		while (answer(fd))
			;
		close(fd);
	}
	return NULL;
}

static void start_agent(void)
{
	static int listener;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	pthread_t thread;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", socket_path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(listener >= 0 && !bind(listener, (struct sockaddr *)&at, sizeof(at)) && !listen(listener, 8), "socket");
	CHECK(!pthread_create(&thread, NULL, agent_main, &listener) && !pthread_detach(thread), "thread");
}

static void make_hints(void)
{
	int fd = open(hints_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && !fchmod(fd, 0644) && !ftruncate(fd, sizeof(*shm)), "hints");
	shm = mmap(NULL, sizeof(*shm), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(shm != MAP_FAILED, "mmap");
	close(fd);
	shm->header.max_entries = MPIB_HINT_MAX_ENTRIES;
	__atomic_store_n(&shm->header.magic, MPIB_HINT_MAGIC, __ATOMIC_RELEASE);
}

static void hint(uint32_t sup_bw)
{
	mpib_hint_put(&shm->entries[SLOT], sup_bw, flow.sout_src_ip, flow.sout_dst_ip);
}

/* ---- what the plugin says ---- */

/* Events of this kind with this cause so far. */
static int events(const char *cause)
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

	while (events(cause) < n)
		rig_pause(&deadline);
	CHECK(events(cause) == n, "%d events %s, not %d", events(cause), cause, n);
}

static struct told {
	int followed, no_agent, stale, bad;
} told;

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

static void count_told(void)
{
	told = (struct told){ events("followed"), events("no_agent"), events("agent_stale"), events("bad_hint") };
}

/* No event but those that were expected. */
static void check_told(const char *when)
{
	CHECK(events("followed") == told.followed && events("no_agent") == told.no_agent &&
	      events("agent_stale") == told.stale && events("bad_hint") == told.bad,
	      "%s: %d followed, %d no_agent, %d stale, %d bad", when, events("followed"), events("no_agent"),
	      events("agent_stale"), events("bad_hint"));
}

/* ---- traffic ---- */

static struct rig rig;
static struct rig_pair pair;

/* SUP's part of the bytes of some messages is what it should be. */
static void measure_each(const char *what, double sup, int messages, void (*each)(int i))
{
	uint64_t before[2] = { rig_sent_by(rig_device(0)), rig_sent_by(rig_device(1)) }, n[2];
	double all, part, slack;

	for (int i = 0; i < messages; i++) {
		if (each)
			each(i);
		rig_exchange(&rig, &pair, MESSAGE);
	}
	n[0] = rig_sent_by(rig_device(0)) - before[0], n[1] = rig_sent_by(rig_device(1)) - before[1];
	all = (double)(n[0] + n[1]);
	part = (double)n[1] / all;
	slack = rig_sent_slack(all, (double)messages * MESSAGE / rig_sent_unit());
	printf("%-40s: SUP %.4f of %.0f on the wire\n", what, part, all);
	CHECK(part > sup - slack && part < sup + slack, "%s: SUP sent %.4f of it, not %.4f", what, part, sup);
}

static void measure(const char *what, double sup)
{
	measure_each(what, sup, strncmp(rig_device(0), "soft", 4) ? MESSAGES / 4 : MESSAGES, NULL); /* an emulated machine is slow */
}

static void open_plugin(bool mpib)
{
	int dev = 0;

	setenv("HA_NCCL_EVENTS", events_path, 1);
	setenv("HA_NCCL_AGENT_SOCKET", socket_path, 1);
	setenv("HA_NCCL_AGENT_HINTS", hints_path, 1);
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
		OK(rig.plugin.abi->fuse(&rig.plugin, &dev, 2, (int[]){ 0, 1 }));
	rig_pair_open_on(&rig, &pair, dev);
}

static void follow_each_share(void)
{
	static const uint32_t shares[] = { 0, 1024, 256, 512, 768, 1, 1023, 646, 0 };
	char name[64];

	for (unsigned i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
		hint(shares[i]);
		snprintf(name, sizeof(name), "hint %u", shares[i]);
		measure(name, shares[i] / 1024.0);
		told.followed += i == 0;
		check_told(name);
	}
}

static void another_hint(int i)
{
	hint(i % 4 ? 1024 : 0);
}

/* A change between any two messages counts for the second. */
static void change_with_each_message(void)
{
	measure_each("another hint for each message", 0.75, 4 * MESSAGES, another_hint);
	check_told("another hint for each message");
}

/* The shares without an agent, then the hint again: an event each. */
static void mend(const char *what, double without)
{
	measure(what, without);
	told.bad++;
	check_told(what);
	shm->entries[SLOT].seq &= ~1u;
	hint(768);
	measure("mended", 0.75);
	told.followed++;
	check_told("mended");
}

static void bad_advice(double without)
{
	struct mpib_hint_entry *e = &shm->entries[SLOT];

	mpib_hint_put(e, 1025, flow.sout_src_ip, flow.sout_dst_ip);
	mend("past 1024", without);
	mpib_hint_put(e, UINT32_MAX, flow.sout_src_ip, flow.sout_dst_ip);
	mend("far past 1024", without);
	__atomic_store_n(&e->seq, e->seq | 1, __ATOMIC_RELEASE);
	mend("its writer died over it", without);
	mpib_hint_put(e, 512, flow.sout_src_ip + 1, flow.sout_dst_ip);
	mend("another flow's source", without);
	mpib_hint_put(e, 512, 0, 0);
	mend("the slot is free", without);
}

static void *scribble(void *stop)
{
	struct mpib_hint_entry *e = &shm->entries[SLOT];

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
static void torn(double without)
{
	atomic_bool stop = false;
	pthread_t thread;

	hint(768);
	CHECK(!pthread_create(&thread, NULL, scribble, &stop), "thread");
	for (int i = 0; i < 2 * MESSAGES; i++)
		rig_exchange(&rig, &pair, MESSAGE);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	hint(768);
	measure("after much scribbling", 0.75);
	CHECK(last_is("followed"), "the last event is not the state");
	count_told();
	hint(1025);
	mend("past 1024 after all that", without);
}

/* A heartbeat that goes on and then stops; and goes on again. */
static void heart(double without)
{
	struct rig_deadline deadline = rig_deadline("the heart stands still");

	hint(768);
	for (uint32_t beat = 1; beat < 20; beat++) {
		__atomic_store_n(&shm->header.beat, beat, __ATOMIC_RELEASE);
		usleep(50000);
		rig_exchange(&rig, &pair, MESSAGE);
	}
	while (!last_is("agent_stale"))
		rig_pause(&deadline);
	count_told(); /* a busy machine may have missed heartbeats before */
	measure("the heart stands still", without);
	check_told("the heart stands still");
	__atomic_store_n(&shm->header.beat, 0, __ATOMIC_RELEASE); /* an agent without a heartbeat took over */
	await_events("followed", ++told.followed);
	measure("another agent", 0.75);
	check_told("another agent");
}

static void vanish(double without)
{
	char away[128];

	snprintf(away, sizeof(away), "%s.away", hints_path);
	CHECK(!rename(hints_path, away), "rename");
	await_events("no_agent", ++told.no_agent);
	measure("the file is gone", without);
	check_told("the file is gone");
	CHECK(!rename(away, hints_path), "rename");
	await_events("followed", ++told.followed);
	measure("the file is back", 0.75);
	CHECK(!chmod(hints_path, 0666), "chmod");
	await_events("no_agent", ++told.no_agent);
	measure("others may write to it", without);
	CHECK(!chmod(hints_path, 0644), "chmod");
	await_events("followed", ++told.followed);
	measure("trusted again", 0.75);
	check_told("the end");
}

static void run(bool mpib)
{
	struct rig_deadline deadline = rig_deadline("registration");
	double without = mpib ? 0 : 0.5;
	unsigned before;

	snprintf(dir, sizeof(dir), "/tmp/ha-advice-XXXXXX");
	CHECK(mkdtemp(dir), "mkdtemp");
	snprintf(socket_path, sizeof(socket_path), "%s/agent.sock", dir);
	snprintf(hints_path, sizeof(hints_path), "%s/hints", dir);
	snprintf(events_path, sizeof(events_path), "%s/events", dir);
	open_plugin(mpib);
	measure("no agent was ever there", without);
	await_events("no_agent", ++told.no_agent);
	make_hints();
	await_events("followed", ++told.followed);
	CHECK(registered == 0, "nobody listens");
	measure("a file of hints, nobody gives slots", without);
	full = true;
	start_agent();
	await_events("no_slot", 1);
	measure("all slots are taken", without);
	full = false;
	while (registered < 2) /* it asks again, every five seconds */
		rig_pause(&deadline);
	await_events("followed", ++told.followed);
	CHECK(events("no_slot") == 1, "%d events, not one", events("no_slot"));
	before = registered;
	/* The slot is free until the agent has written it: the connection's hint belongs to nobody. */
	told.bad = events("bad_hint");
	hint(0);
	follow_each_share();
	change_with_each_message();
	hint(768);
	measure("hint 768", 0.75);
	bad_advice(without);
	torn(without);
	heart(without);
	vanish(without);
	CHECK(registered == before, "%u registrations of one connection", registered);
	rig_pair_close(&rig, &pair);
	deadline = rig_deadline("deregistration");
	while (!deregistered)
		rig_pause(&deadline);
	rig_close(&rig);
	unlink(socket_path);
	unlink(hints_path);
	unlink(events_path);
	rmdir(dir);
}

/* A process each: variables are read once. */
int main(void)
{
	for (int mpib = 0; mpib < 2; mpib++) {
		int status;
		pid_t child = fork();

		if (!child) {
			run(mpib);
			fflush(stdout);
			_exit(0);
		}
		CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%s", mpib ? "MPIB" : "fused");
	}
	return 0;
}
