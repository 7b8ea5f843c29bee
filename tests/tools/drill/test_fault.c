/* SPDX-License-Identifier: BSD-3-Clause */
/* What a fault has changed is put back as it was, also where it changes one NIC twice. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "softroce/control.h"
#include "tools/drill/fault.h"

static struct sr_control control;
static atomic_uint cut;
static atomic_bool ended;

static void publish_page(void)
{
	struct sr_control_page page = { .link_up = 1 };

	sr_control_publish(&control, &page);
}

/* The NIC: it takes each change and answers. */
static void *be_owner(void *arg)
{
	while (!atomic_load_explicit(&ended, memory_order_acquire)) {
		struct pollfd fd = { .fd = control.bell, .events = POLLIN };
		struct sr_faults faults;

		if (poll(&fd, 1, 20) != 1)
			continue;
		CHECK(!sr_control_read(&control, &faults));
		atomic_store_explicit(&cut, faults.cut, memory_order_relaxed);
		publish_page();
	}
	return arg;
}

static void test_same_nic_twice(void)
{
	static struct fault_saved saved;
	static struct fault fault = { .kind = FAULT_CUT, .places = 2 };

	for (int i = 0; i < 2; i++) {
		snprintf(fault.place[i].device, sizeof(fault.place[i].device), "twice");
		fault.place[i].pid = (uint32_t)getpid();
	}
	CHECK(!fault_apply(&fault, &saved));
	CHECK_INT(atomic_load_explicit(&cut, memory_order_relaxed), 1);
	CHECK(!fault_undo(&fault, &saved));
	CHECK_INT(atomic_load_explicit(&cut, memory_order_relaxed), 0);
}

int main(void)
{
	char folder[] = "/tmp/ha-test-fault-XXXXXX";
	pthread_t owner;

	CHECK(mkdtemp(folder));
	CHECK(!setenv("SOFTROCE_CONTROL", folder, 1));
	CHECK(!sr_control_open(&control, "twice"));
	publish_page();
	CHECK(!pthread_create(&owner, NULL, be_owner, NULL));
	test_same_nic_twice();
	atomic_store_explicit(&ended, true, memory_order_release);
	CHECK(!pthread_join(owner, NULL));
	sr_control_close(&control);
	CHECK(!rmdir(folder));
	return 0;
}
