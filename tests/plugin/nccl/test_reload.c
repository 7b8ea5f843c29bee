/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loading and unloading: 50 times with a connection in between, descriptors and threads as before;
 * the library loaded twice; and a second copy of the file loaded beside the first, each with its
 * own state, connected to each other.
 */
#include "tests/plugin/nccl/rig.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define CYCLES 50

static void load_and_unload(struct rig *rig, bool connect)
{
	struct rig_pair pair;

	rig_load(rig, rig_plugin_path());
	OK(rig_init(rig));
	OK(rig->plugin.count(&rig->plugin.devices));
	if (connect) {
		rig_pair_open(rig, &pair);
		rig_exchange(rig, &pair, 1000);
		rig_pair_close(rig, &pair);
	}
	rig_close(rig);
}

static void loaded_twice(struct rig *rig)
{
	struct rig other = *rig;

	rig_load(rig, rig_plugin_path());
	rig_load(&other, rig_plugin_path());
	CHECK(rig->plugin.table == other.plugin.table, "one file, two tables");
	OK(rig_init(rig));
	OK(rig_init(&other));
	rig_close(&other);
	CHECK(rig->plugin.count(&rig->plugin.devices) == ncclSuccess && rig->plugin.devices > 0,
	      "gone with its twin");
	rig_close(rig);
}

static void copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC),
	    out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	struct stat st;

	CHECK(in >= 0 && out >= 0 && !fstat(in, &st), "%s to %s", from, to);
	for (off_t at = 0; at < st.st_size;)
		CHECK(sendfile(out, in, &at, (size_t)(st.st_size - at)) > 0, "copy of %s", from);
	close(in);
	close(out);
}

/* A listener of one copy, a connector of the other: they share nothing but the wire. */
static void two_copies(struct rig *rig, const char *copy)
{
	struct rig other = *rig;
	struct rig_deadline deadline = rig_deadline("a connection between two copies");
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE], from[256], to[256] = { 0 };
	void *listen, *send = NULL, *recv = NULL, *from_mr, *to_mr, *requests[2];

	rig_load(rig, rig_plugin_path());
	copy_file(rig->plugin.library ? rig_plugin_path() : "", copy);
	rig_load(&other, copy);
	CHECK(rig->plugin.table != other.plugin.table, "two files, one table");
	OK(rig_init(rig));
	OK(rig_init(&other));
	OK(rig->plugin.abi->listen(&rig->plugin, 0, handle, &listen));
	while (!send || !recv) {
		if (!send)
			OK(other.plugin.abi->connect(&other.plugin, 0, handle, &send));
		if (!recv)
			OK(rig->plugin.abi->accept(&rig->plugin, listen, &recv));
		rig_pause(&deadline);
	}
	rig_fill(from, sizeof(from), 5);
	from_mr = rig_reg(&other, send, from, sizeof(from));
	to_mr = rig_reg(rig, recv, to, sizeof(to));
	requests[0] = rig_irecv(rig, recv, to, sizeof(to), 0, to_mr);
	requests[1] = rig_isend(&other, send, from, sizeof(from), 0, from_mr);
	rig_wait(&other, requests[1], NULL);
	rig_wait(rig, requests[0], NULL);
	CHECK(rig_differ(to, sizeof(to), 5) == sizeof(to), "wrong bytes");
	OK(other.plugin.dereg(send, from_mr));
	OK(rig->plugin.dereg(recv, to_mr));
	OK(other.plugin.close_send(send));
	OK(rig->plugin.close_recv(recv));
	OK(rig->plugin.close_listen(listen));
	rig_close(&other);
	rig_close(rig);
	unlink(copy); /* not before: what the plugin needs it looks for beside itself */
}

int main(int argc, char **argv)
{
	char copy[4096];
	struct rig rig;
	int threads, fds, left;

	rig_prepare(&rig, argc, argv);
	threads = rig_count_threads(1);
	load_and_unload(&rig,
			true); /* what stays for good (locale, resolver, allocator) is there now */
	fds = rig_count_fds();
	if (rig.version < 11) /* no finalize: the context stays, and the library with it */
		threads = rig_count_lasting_threads(1);
	for (int i = 0; i < CYCLES; i++)
		load_and_unload(&rig, i % 10 == 0);
	if (rig.version < 11)
		rig_shrink_to(threads, fds);
	left = rig.version < 11 ? rig_count_lasting_threads(threads) : rig_count_threads(threads);
	CHECK(left <= threads, "%d threads, %d before", left, threads);
	CHECK(rig_count_fds() <= fds, "%d descriptors, %d before", rig_count_fds(), fds);
	loaded_twice(&rig);
	snprintf(copy, sizeof(copy), "%s.copy.%d", rig_plugin_path(), getpid());
	two_copies(&rig, copy);
	return 0;
}
