/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control page, with RC traffic between two processes: cut ends in "retry exceeded" and port
 * events, heal brings the port back, loss and its like change no byte, a black hole swallows one
 * direction, kill is for good for what was open, until somebody restores the device.
 */
#include "softroce/control.h"
#include "softroce/folder.h"
#include "tests/softroce/front_side.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct side_options fast = { .timeout = 10,
					  .retry_cnt = 3,
					  .size = 1 << 20 }; /* 4.2 ms per try */
static const struct side_options long_timeout = {
	.timeout = 17, .retry_cnt = 7, .size = 1 << 20
}; /* 4.3 s: NICs are threads, which a busy machine lets wait */

static struct sr_faults wanted;

static void faults_put(struct sr_faults *faults, void *arg)
{
	*faults = wanted;
}

/* Change the faults of this process's own device, from outside as any tool would. */
static void faults_set(const char *device, const struct sr_faults *faults)
{
	struct sr_control_entry *list;
	char selector[64];
	int n, err;

	wanted = *faults;
	snprintf(selector, sizeof(selector), "%s:%d", device, (int)getpid());
	list = sr_control_list(selector, &n);
	CHECK(list && n == 1);
	do
		err = sr_control_change(list, faults_put, NULL);
	while (err == -EBUSY); /* a busy machine */
	CHECK(!err);
	free(list);
}

static struct sr_control_page page_get(const char *device)
{
	struct sr_control_entry *list;
	struct sr_control_page page;
	char selector[64];
	int n, err;

	snprintf(selector, sizeof(selector), "%s:%d", device, (int)getpid());
	list = sr_control_list(selector, &n);
	CHECK(list && n == 1);
	do
		err = sr_control_refresh(list);
	while (err == -EBUSY);
	CHECK(!err);
	page = list->page;
	free(list);
	return page;
}

static void event_expect(struct side *side, enum ibv_event_type type)
{
	struct pollfd pfd = { .fd = side->context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	CHECK(poll(&pfd, 1, 10000) == 1);
	CHECK(!ibv_get_async_event(side->context, &event));
	ibv_ack_async_event(&event);
	if (event.event_type != type)
		fprintf(stderr, "event: %s\n", ibv_event_type_str(event.event_type));
	CHECK(event.event_type == type);
}

static enum ibv_port_state port_state(struct side *side)
{
	struct ibv_port_attr attr;

	CHECK(!ibv_query_port(side->context, 1, &attr));
	return attr.state;
}

static void run_passive(int fd, const struct side_options *options)
{
	struct side side;

	side_open(&side, fd, options);
	memset(side.buf, 0, side.size);
	side_connect(&side, options);
	side_meet(&side);
	side_close(&side);
}

static void passive_fast(int fd)
{
	run_passive(fd, &fast);
}

static void cut_link(int fd)
{
	struct side side;
	struct ibv_wc wc;

	side_open(&side, fd, &fast);
	side_connect(&side, &fast);
	faults_set("soft0", &(struct sr_faults) { .cut = 1 });
	event_expect(&side, IBV_EVENT_PORT_ERR);
	CHECK(port_state(&side) == IBV_PORT_DOWN);
	CHECK(!page_get("soft0").link_up);
	side_post_send(&side, IBV_WR_RDMA_WRITE, 7, 0, 4096);
	CHECK(side_wait(&side, &wc, 20000));
	CHECK(wc.wr_id == 7 && wc.status == IBV_WC_RETRY_EXC_ERR);
	faults_set("soft0", &(struct sr_faults) { 0 });
	event_expect(&side, IBV_EVENT_PORT_ACTIVE);
	CHECK(port_state(&side) == IBV_PORT_ACTIVE);
	side_meet(&side);
	side_close(&side);
}

/* A short cut is survived: the retries bridge it. */
static void cut_and_heal(int fd)
{
	struct side side;
	struct ibv_wc wc;

	side_open(&side, fd, &long_timeout);
	side_connect(&side, &long_timeout);
	faults_set("soft0", &(struct sr_faults) { .cut = 1 });
	side_post_send(&side, IBV_WR_RDMA_WRITE, 8, 0, 100000);
	CHECK(!side_wait(&side, &wc, 20));
	faults_set("soft0", &(struct sr_faults) { 0 });
	CHECK(side_wait(&side, &wc, 20000) && wc.status == IBV_WC_SUCCESS);
	side_meet(&side);
	side_close(&side);
}

static void passive_long_timeout(int fd)
{
	run_passive(fd, &long_timeout);
}

static const struct sr_faults bad_weather = {
	.tx = { .drop_ppm = 10000,
		.dup_ppm = 5000,
		.reorder_ppm = 5000,
		.delay_ns = 20000,
		.jitter_ns = 30000 },
	.rx = { .drop_ppm = 10000, .dup_ppm = 5000, .reorder_ppm = 5000 },
};

#define ROUNDS 12

static unsigned char pattern_byte(size_t i, int round)
{
	return (i * 2654435761u >> 13) ^ round * 37;
}

static void weather_sender(int fd)
{
	struct sr_control_page page;
	struct side side;
	struct ibv_wc wc;

	side_open(&side, fd, &long_timeout);
	side_connect(&side, &long_timeout);
	faults_set("soft0", &bad_weather);
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < side.size; i++)
			side.buf[i] = pattern_byte(i, round);
		side_post_send(&side, IBV_WR_RDMA_WRITE, 1, 0, side.size - 64);
		side_post_send(&side, IBV_WR_SEND, 2, side.size - 64, 64);
		for (uint64_t id = 1; id <= 2; id++)
			CHECK(side_wait(&side, &wc, 60000) && wc.status == IBV_WC_SUCCESS &&
			      wc.wr_id == id);
		side_meet(&side);
		side_meet(&side);
	}
	page = page_get("soft0");
	CHECK(page.wire.lost_by_fault > 0 && page.wire.delayed_by_fault > 0 &&
	      page.counters.sent_pkts > ROUNDS * 1024);
	CHECK(page.wire.bad_icrc == 0);
	side_close(&side);
}

static void weather_receiver(int fd)
{
	struct side side;
	struct ibv_wc wc;

	side_open(&side, fd, &long_timeout);
	side_post_recv(&side, 0, side.size - 64, 64);
	side_connect(&side, &long_timeout);
	for (int round = 0; round < ROUNDS; round++) {
		side_meet(&side);
		CHECK(side_wait(&side, &wc, 60000) && wc.status == IBV_WC_SUCCESS &&
		      wc.byte_len == 64);
		for (size_t i = 0; i < side.size; i++)
			CHECK(side.buf[i] == pattern_byte(i, round));
		side_post_recv(&side, 0, side.size - 64, 64);
		side_meet(&side);
	}
	side_close(&side);
}

/* Acknowledgements vanish, data does not: the write lands, the sender never learns. */
static void lose_received_packets(int fd)
{
	struct side side;
	struct ibv_wc wc;

	side_open(&side, fd, &fast);
	memset(side.buf, 0x5a, 4096);
	side_connect(&side, &fast);
	faults_set("soft0", &(struct sr_faults) { .rx = { .blackhole = 1 } });
	CHECK(port_state(&side) == IBV_PORT_ACTIVE);
	side_post_send(&side, IBV_WR_RDMA_WRITE, 3, 0, 4096);
	CHECK(side_wait(&side, &wc, 20000) && wc.status == IBV_WC_RETRY_EXC_ERR);
	side_meet(&side);
	side_close(&side);
}

static void blackhole_passive(int fd)
{
	struct side side;

	side_open(&side, fd, &fast);
	side_connect(&side, &fast);
	side_meet(&side);
	/* The packets are here, but on a busy machine the NIC, a thread, may not have come to
	 * them yet. */
	for (int ms = 0; ms < 20000 && ((volatile unsigned char *)side.buf)[4095] != 0x5a; ms++)
		usleep(1000);
	for (int i = 0; i < 4096; i++)
		CHECK(side.buf[i] == 0x5a);
	side_close(&side);
}

static void kill_device(int fd)
{
	struct side side;
	struct ibv_sge sge = { 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge }, *bad;

	side_open(&side, fd, &fast);
	side_connect(&side, &fast);
	faults_set("soft0", &(struct sr_faults) { .kill = 1 });
	event_expect(&side, IBV_EVENT_DEVICE_FATAL);
	CHECK(ibv_post_send(side.qp, &wr, &bad) == EIO && bad == &wr);
	CHECK(port_state(&side) == IBV_PORT_DOWN);
	faults_set("soft0", &(struct sr_faults) { 0 });
	CHECK(ibv_post_send(side.qp, &wr, &bad) == EIO);
	CHECK(page_get("soft0").dead);
	faults_set("soft0", &(struct sr_faults) { .kill = 1, .restore = 1 }); /* for what follows */
	side_meet(&side);
	side_close(&side);
}

static int count_listed(const char *name, __be64 *guid)
{
	int n, found = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	CHECK(list);
	for (int i = 0; i < n; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name)) {
			*guid = ibv_get_device_guid(list[i]);
			found++;
		}
	ibv_free_device_list(list);
	return found;
}

/* Posts, polls and registers on what was opened before its device failed. */
static void dead_for_good(struct side *side)
{
	struct ibv_sge sge = { 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge }, *bad;
	struct ibv_port_attr attr;
	struct ibv_wc wc;

	CHECK(ibv_post_send(side->qp, &wr, &bad) == EIO && bad == &wr);
	CHECK(ibv_poll_cq(side->cq, 1, &wc) == 0);
	CHECK(ibv_query_port(side->context, 1, &attr) == EIO || attr.state == IBV_PORT_DOWN);
}

/* Killed, it is not listed and cannot be opened; restored, it is there with its address and works,
 * while what was open stays dead. */
static void kill_and_restore_as(int fd, const char *name, bool close_first)
{
	struct sr_faults restore = { .kill = 1, .restore = 1 };
	struct side side, again;
	__be64 before, after;
	struct ibv_wc wc;

	side_open(&side, fd, &fast);
	side_connect(&side, &fast);
	CHECK(count_listed("soft0", &before) == 1);
	faults_set("soft0", &(struct sr_faults) { .kill = 1 });
	event_expect(&side, IBV_EVENT_DEVICE_FATAL);
	CHECK(count_listed(NULL, &after) == 0);
	CHECK(!ibv_open_device(side.list[0]) && errno == ENODEV);
	dead_for_good(&side);
	side_meet(&side);
	if (close_first) {
		side_close(&side);
		CHECK(count_listed(NULL, &after) == 0);
		CHECK(page_get("soft0").dead);
	}
	snprintf(restore.restore_as, sizeof(restore.restore_as), "%s", name ? name : "");
	faults_set("soft0", &restore);
	CHECK(count_listed(name ? name : "soft0", &after) == 1 && before == after);
	if (name)
		CHECK(count_listed("soft0", &after) == 0);
	side_open(&again, fd, &long_timeout);
	side_connect(&again, &long_timeout);
	if (!close_first)
		dead_for_good(&side);
	CHECK(!page_get(name ? name : "soft0").dead);
	side_post_send(&again, IBV_WR_RDMA_WRITE, 7, 0, 4096);
	CHECK(side_wait(&again, &wc, 60000) && wc.status == IBV_WC_SUCCESS);
	side_meet(&again);
	if (!close_first)
		side_close(&side);
	side_close(&again);
}

static void kill_and_restore_peer(int fd)
{
	struct side side, again;

	side_open(&side, fd, &fast);
	side_connect(&side, &fast);
	side_meet(&side);
	side_close(&side);
	side_open(&again, fd, &long_timeout);
	side_connect(&again, &long_timeout);
	side_meet(&again);
	side_close(&again);
}

static void kill_and_restore(int fd)
{
	kill_and_restore_as(fd, NULL, false);
}

static void kill_close_restore(int fd)
{
	kill_and_restore_as(fd, NULL, true);
}

static void kill_and_rename(int fd)
{
	kill_and_restore_as(fd, "other4", false);
}

/* Garbage in the page, and a page cut short, change nothing; the bell still rings. */
static void write_garbage_faults(int fd)
{
	struct side side;
	struct ibv_wc wc;
	char path[256], folder[128];
	int page;

	side_open(&side, fd, &long_timeout);
	side_connect(&side, &long_timeout);
	snprintf(path, sizeof(path), "%s/soft0.%d", sr_folder_path(folder, sizeof(folder)),
		 (int)getpid());
	page = open(path, O_RDWR);
	CHECK(page >= 0);
	for (int round = 0; round < 3; round++) {
		char bell[300], garbage[1024];
		int fifo;

		memset(garbage, round ? 0xff : 0x00, sizeof(garbage));
		if (round < 2)
			CHECK(pwrite(page, garbage, sizeof(garbage), 0) == sizeof(garbage));
		else
			CHECK(!ftruncate(page, 0));
		snprintf(bell, sizeof(bell), "%s.bell", path);
		fifo = open(bell, O_WRONLY | O_NONBLOCK);
		CHECK(fifo >= 0 && write(fifo, garbage, sizeof(garbage)) > 0);
		close(fifo);
		side_post_send(&side, IBV_WR_RDMA_WRITE, 3, 0, 65536);
		CHECK(side_wait(&side, &wc, 20000) && wc.status == IBV_WC_SUCCESS);
	}
	close(page);
	side_meet(&side);
	side_close(&side);
}

/* A process of its own: the threads of a device that failed stay, and a process with threads can
 * have no child that starts some under ThreadSanitizer. */
static void run_apart(void (*one)(int fd), void (*two)(int fd))
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		side_run(one, two);
		_exit(0); /* what the parent does at its end is not for this one */
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

int main(void)
{
	side_isolate("127.72.0.0/24");
	side_run(cut_link, passive_fast);
	side_run(cut_and_heal, passive_long_timeout);
	side_run(weather_sender, weather_receiver);
	side_run(lose_received_packets, blackhole_passive);
	side_run(write_garbage_faults, passive_long_timeout);
	run_apart(kill_device, passive_fast);
	run_apart(kill_and_restore, kill_and_restore_peer);
	run_apart(kill_close_restore, kill_and_restore_peer);
	run_apart(kill_and_rename, kill_and_restore_peer);
	return 0;
}
