/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small sends that are complete when they are posted (HA_NCCL_COPY_MAX, on by default), and no NIC
 * has carried yet: a program that ends by exit() without closing anything delivers them all the
 * same, over the standby or when a path is back; its forked child does not wait for them; where no
 * path comes back it ends in time and says so. And where the connection ends first, or is closed,
 * the calls that follow, the log and the events say so, once.
 *
 * The sender is a process of its own. Its NICs' cables and packets are its own to break.
 */
#include "tests/plugin/nccl/rig.h"

#include "softroce/control.h"
#include "tests/base/folder.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 8
#define LARGE 4096
#define SENDS 20 /* more than the plugin posts without looking for completions */
#define CLOSES 16

/* How long the plugin waits: HA_NCCL_RTO_MS and a second. In the scenes where nothing may be given
 * up it is longer than any machine needs; in the others, so much less than what must not pass. */
#define LONG_RTO_MS "60000"
#define SHORT_RTO_MS "1000" /* at least twice the NIC's own time: 4.8 s in all */
#define SHORT_S 40.0
/* Where nothing gets out, a NIC finds out after 1.9 s. What is to be posted before that and is not,
 * on a busy machine, decides nothing: the scene begins anew. */
#define QP_TIMEOUT "16"
#define POST_S 1.8
#define LATE_STATUS 3
#define TRIES 20

static struct rig rig;
static int fd; /* to the other process */
static char folder[] = "/tmp/hawser-exit-XXXXXX";

/* ---- the two processes ---- */

static void send_bytes(const void *data, size_t size)
{
	CHECK(send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size, "the test's own socket");
}

/* False: the other process has ended. */
static bool receive_bytes(void *data, size_t size)
{
	return recv(fd, data, size, MSG_WAITALL) == (ssize_t)size;
}

static void *connect_to_receiver(void)
{
	struct rig_deadline deadline = rig_deadline("connect");
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	void *comm = NULL;

	CHECK(receive_bytes(handle, sizeof(handle)), "no handle");
	while (!comm) {
		OK(rig.plugin.abi->connect(&rig.plugin, 0, handle, &comm));
		rig_pause(&deadline);
	}
	return comm;
}

static void *accept_sender(void)
{
	struct rig_deadline deadline = rig_deadline("accept");
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	void *comm = NULL, *listen;

	OK(rig.plugin.abi->listen(&rig.plugin, 0, handle, &listen));
	send_bytes(handle, sizeof(handle));
	while (!comm) {
		OK(rig.plugin.abi->accept(&rig.plugin, listen, &comm));
		rig_pause(&deadline);
	}
	OK(rig.plugin.close_listen(listen));
	return comm;
}

/* ---- faults ---- */

static void set_cut(struct sr_faults *faults, void *arg)
{
	faults->cut = *(const bool *)arg;
}

static void set_blackhole(struct sr_faults *faults, void *arg)
{
	faults->tx.blackhole = *(const bool *)arg;
}

/* Of the sender's. */
static void break_nic(pid_t pid, int nic, void (*how)(struct sr_faults *faults, void *arg),
		      bool broken)
{
	struct sr_control_entry *entry;
	char selector[64];
	int n;

	snprintf(selector, sizeof(selector), "soft%d:%d", nic, (int)pid);
	entry = sr_control_list(selector, &n);
	CHECK(entry && n == 1, "%d devices are called %s", n, selector);
	CHECK(!sr_control_change(entry, how, &broken), "%s does not take its fault", selector);
	free(entry);
}

static double swallowed_at; /* 0: not yet */

/* Nothing gets out, and nobody knows: what is posted now no NIC carries. What comes in does, since
 * the last receives may still be on their way. */
static void swallow_all(void)
{
	swallowed_at = rig_now();
	break_nic(getpid(), 0, set_blackhole, true);
	break_nic(getpid(), 1, set_blackhole, true);
}

static bool is_late(void)
{
	return swallowed_at > 0 && rig_now() - swallowed_at > POST_S;
}

static void leave_late(void)
{
	send_bytes("l", 1);
	_exit(LATE_STATUS);
}

/* Now the NICs know; the receiver learns whether that was early enough. */
static void cut_both(void)
{
	break_nic(getpid(), 0, set_cut, true);
	break_nic(getpid(), 1, set_cut, true);
	if (is_late())
		leave_late();
	send_bytes("p", 1);
}

/* The receiver's process. */
static void await_cut(void)
{
	char how;

	CHECK(receive_bytes(&how, 1), "the sender has ended");
	if (how == 'l')
		_exit(LATE_STATUS);
}

static void put_back(pid_t pid)
{
	for (int nic = 0; nic < 2; nic++) {
		break_nic(pid, nic, set_blackhole, false);
		break_nic(pid, nic, set_cut, false);
	}
}

/* ---- the sender ---- */

static uint8_t from[LARGE];
static void *comm, *mr;

static void *post_send(size_t size)
{
	struct rig_deadline deadline = rig_deadline("isend");
	void *request = NULL;
	ncclResult_t result;

	for (;;) {
		result = rig.plugin.abi->isend(&rig.plugin, comm, from, size, 0, mr, &request);
		if (result == ncclSuccess && request)
			return request;
		if (is_late())
			leave_late();
		OK(result);
		rig_pause(&deadline);
	}
}

/* Each is complete before any NIC has carried it, and its buffer another's. */
static void complete_sends(int n)
{
	for (int i = 0; i < n; i++) {
		rig_fill(from, SIZE, (uint32_t)i);
		rig_wait(&rig, post_send(SIZE), NULL);
	}
	memset(from, 0xee, SIZE);
}

/* The receiver has posted its receives, and there is a standby. */
static void open_sender(int argc, char **argv)
{
	struct rig_deadline deadline = rig_deadline("a standby, and the receives");
	void *none;
	char ready;

	rig_open(&rig, argc, argv);
	comm = connect_to_receiver();
	mr = rig_reg(&rig, comm, from, sizeof(from));
	while (!rig_logged(" protected")) {
		/* no receive has this tag: without a service thread, calls drive the connection */
		OK(rig.plugin.abi->isend(&rig.plugin, comm, from, SIZE, 1, mr, &none));
		rig_pause(&deadline);
	}
	CHECK(receive_bytes(&ready, 1), "the receiver has ended");
}

static void report_posted(void)
{
	send_bytes("", 1);
}

static void exit_silent(void)
{
	break_nic(getpid(), 0, set_blackhole, true);
	complete_sends(SENDS);
	exit(0);
}

static void exit_cut(void)
{
	break_nic(getpid(), 0, set_blackhole, true);
	complete_sends(SENDS);
	break_nic(getpid(), 0, set_cut, true);
	exit(0);
}

static void post_in_vain(void)
{
	swallow_all();
	complete_sends(SENDS);
	cut_both();
}

/* The receiver's process puts the cables back when it sees that this one waits. */
static void exit_away(void)
{
	post_in_vain();
	report_posted();
	exit(0);
}

static void exit_child(void)
{
	double begin;
	pid_t child;
	int status;

	post_in_vain();
	begin = rig_now();
	child = fork();
	CHECK(child >= 0, "fork");
	if (!child)
		exit(0);
	CHECK(waitpid(child, &status, 0) == child && !status, "the child ended with 0x%x", status);
	CHECK(rig_now() - begin < SHORT_S, "the child waited for its parent's sends");
	report_posted();
	exit(0);
}

static double exit_begun;

static void check_given_up(void)
{
	CHECK(rig_log_lines("the process ends without closing") == 1, "%s", rig_last_log());
	CHECK(rig_logged("and 20 small sends (HA_NCCL_COPY_MAX) on 1 of them"), "%s",
	      rig_last_log());
	CHECK(rig_now() - exit_begun < SHORT_S, "it took %.1f s", rig_now() - exit_begun);
	_exit(0);
}

static void exit_lost(void)
{
	post_in_vain();
	exit_begun = rig_now();
	exit(0);
}

/* Lines of the file of events that have it. */
static unsigned count_events(const char *text)
{
	char line[4096], path[256];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/events", folder);
	f = fopen(path, "r");
	CHECK(f, "no events");
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	fclose(f);
	return n;
}

/* HA_NCCL_MAX_RETRIES is over in a tenth of a second: the connection ends. */
static void call_later(void)
{
	struct rig_deadline deadline = rig_deadline("an error");
	ncclResult_t result = ncclSuccess;
	void *before, *none;

	rig_wait(&rig, rig_isend(&rig, comm, from, LARGE, 0, mr), NULL);
	swallow_all();
	complete_sends(SENDS);
	before = post_send(LARGE);
	cut_both();
	while (result == ncclSuccess) {
		result = rig.plugin.abi->isend(&rig.plugin, comm, from, LARGE, 0, mr, &none);
		CHECK(!none, "there is a path");
		rig_pause(&deadline);
	}
	CHECK(result == ncclRemoteError, "isend says %d", result);
	CHECK(rig_wait_any(&rig, before, NULL) == ncclRemoteError, "test gives no error");
	CHECK(rig_log_lines("lost: ") == 1, "%u lines", rig_log_lines("lost: "));
	CHECK(count_events("\"lost\"") == 1, "%u events", count_events("\"lost\""));
	OK(rig.plugin.dereg(comm, mr));
	OK(rig.plugin.close_send(comm));
	CHECK(rig_log_lines("lost: ") == 1, "%u lines", rig_log_lines("lost: "));
	rig_close(&rig);
	exit(0);
}

/* Connections that have had no path for long enough are not waited for one after the other. */
static void close_many(void)
{
	void *first = comm, *more[CLOSES];
	double begin;

	for (int i = 0; i < CLOSES; i++)
		more[i] = connect_to_receiver();
	CHECK(receive_bytes(from, 1), "the receiver has ended");
	swallow_all();
	for (int i = 0; i < CLOSES; i++) {
		comm = more[i];
		mr = rig_reg(&rig, comm, from, sizeof(from));
		complete_sends(1);
	}
	cut_both();
	begin = rig_now();
	for (int i = 0; i < CLOSES; i++)
		OK(rig.plugin.close_send(more[i]));
	CHECK(rig_now() - begin < SHORT_S, "it took %.1f s", rig_now() - begin);
	CHECK(rig_log_lines("closed while 1 small sends") == CLOSES, "%u lines",
	      rig_log_lines("closed while"));
	CHECK(count_events("\"lost\"") == CLOSES, "%u events", count_events("\"lost\""));
	OK(rig.plugin.close_send(first));
	rig_close(&rig);
	exit(0);
}

/* ---- the receiver ---- */

static uint8_t to[SENDS + 2][LARGE];
static void *requests[SENDS + 2];

static void open_receiver(int argc, char **argv)
{
	void *to_mr;

	rig_open(&rig, argc, argv);
	comm = accept_sender();
	to_mr = rig_reg(&rig, comm, to, sizeof(to));
	for (int i = 0; i < SENDS + 2; i++)
		requests[i] = rig_irecv(&rig, comm, to[i], LARGE, 0, to_mr);
	send_bytes("", 1);
}

static void expect_all(pid_t sender)
{
	(void)sender;
	for (int i = 0; i < SENDS; i++) {
		int size;

		rig_wait(&rig, requests[i], &size);
		CHECK(size == SIZE && rig_differ(to[i], SIZE, (uint32_t)i) == SIZE, "message %d",
		      i);
	}
}

/* It waits, and goes on when there is a path again. */
static void expect_after_return(pid_t sender)
{
	char posted;

	await_cut();
	CHECK(receive_bytes(&posted, 1), "the sender has ended");
	usleep(200000);
	CHECK(waitpid(sender, NULL, WNOHANG) == 0, "the sender did not wait");
	put_back(sender);
	expect_all(sender);
}

static void expect_error(pid_t sender)
{
	(void)sender;
	await_cut();
	CHECK(rig_wait_any(&rig, requests[SENDS + 1], NULL) != ncclSuccess, "no error");
}

static void expect_many(pid_t sender)
{
	uint8_t *data = to[0];

	for (int i = 0; i < CLOSES; i++) {
		void *more = accept_sender();

		rig_irecv(&rig, more, data, LARGE, 0, rig_reg(&rig, more, data, LARGE));
	}
	send_bytes("", 1);
	expect_error(sender);
}

/* ---- scenes ---- */

static const struct scene {
	const char *name, *rto_ms, *retries;
	void (*send)(void);
	void (*expect)(pid_t sender);
	bool given_up;
} scenes[] = {
	{ "silent", LONG_RTO_MS, "10", exit_silent, expect_all, false },
	{ "cut", LONG_RTO_MS, "10", exit_cut, expect_all, false },
	{ "away", LONG_RTO_MS, "10", exit_away, expect_after_return, false },
	{ "child", LONG_RTO_MS, "10", exit_child, expect_after_return, false },
	{ "lost", SHORT_RTO_MS, "10", exit_lost, expect_error, true },
	{ "later", SHORT_RTO_MS, "1", call_later, expect_error, false },
	{ "close", SHORT_RTO_MS, "10", close_many, expect_many, false },
};

static void play_scene(const struct scene *scene, int argc, char **argv)
{
	int ends[2], status;
	char events_path[256];
	pid_t sender;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socketpair");
	setenv("HA_NCCL_HEARTBEAT_MS", "10000", 1);
	setenv("HA_NCCL_QP_TIMEOUT", QP_TIMEOUT, 1);
	setenv("HA_NCCL_RTO_MS", scene->rto_ms, 1);
	setenv("HA_NCCL_MAX_RETRIES", scene->retries, 1);
	sender = fork();
	CHECK(sender >= 0, "fork");
	fd = ends[!sender];
	close(ends[!!sender]);
	if (!sender) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(events_path, sizeof(events_path), "%s/events", folder);
		setenv("HA_NCCL_EVENTS", events_path, 1);
		if (scene->given_up) /* before the plugin's, so that it runs after that */
			atexit(check_given_up);
		open_sender(argc, argv);
		scene->send();
	}
	open_receiver(argc, argv);
	scene->expect(sender);
	CHECK(waitpid(sender, &status, 0) == sender && !status, "%s: the sender ended with 0x%x",
	      scene->name, status);
	_exit(0);
}

/* Nothing is given back here on purpose: not for a leak detector. */
int __lsan_is_turned_off(void) __attribute__((visibility("default")));
int __lsan_is_turned_off(void)
{
	return 1;
}

/* False: it has decided nothing. */
static bool scene_decides(const struct scene *scene, int argc, char **argv)
{
	int status;
	pid_t child;

	memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
	CHECK(mkdtemp(folder), "no folder");
	setenv("SOFTROCE_CONTROL", folder, 1);
	child = fork();
	CHECK(child >= 0, "fork");
	if (!child)
		play_scene(scene, argc, argv);
	CHECK(waitpid(child, &status, 0) == child, "waitpid");
	CHECK(!folder_remove(folder), "%s cannot be removed", folder);
	if (WIFEXITED(status) && WEXITSTATUS(status) == LATE_STATUS)
		return false;
	CHECK(!status, "%s: 0x%x", scene->name, status);
	return true;
}

int main(int argc, char **argv)
{
	const char *only = argc > 2 ? argv[2] : NULL;

	for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
		int tries = 1;

		if (only && strcmp(only, scenes[i].name))
			continue;
		while (!scene_decides(&scenes[i], argc, argv)) {
			printf("%s: posted too late\n", scenes[i].name);
			fflush(stdout);
			CHECK(tries++ < TRIES, "%s: too late each time", scenes[i].name);
		}
		printf("v%s %s\n", argv[1], scenes[i].name);
		fflush(stdout);
	}
	return 0;
}
