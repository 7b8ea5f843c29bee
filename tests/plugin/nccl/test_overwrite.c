/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * *request is overwritten by every call, whatever stood there: NCCL leaves finished requests and
 * its sentinel 0x1 in it, and takes what is not NULL for a request of ours. Negative sizes of the
 * int versions and impossible groups are refused.
 */
#include "tests/plugin/nccl/rig.h"

#include <unistd.h>

#define STALE ((void *)0xdeadbeef)

static void *stale_request(struct rig *rig)
{
	return rig->version >= 9 ? (void *)NCCL_NET_OPTIONAL_RECV_COMPLETION : STALE;
}

static void check_refused(struct rig *rig, struct rig_pair *pair, uint8_t *buffer, void *from_mr,
			  void *to_mr)
{
	void *data[9], *mhandles[9], *request = stale_request(rig);
	long sizes[9];
	int tags[9];

	for (int i = 0; i < 9; i++) {
		data[i] = buffer;
		mhandles[i] = to_mr;
		sizes[i] = 8;
		tags[i] = i;
	}
	CHECK(rig_raw_irecv(rig, pair->recv, 9, data, sizes, tags, mhandles, &request) !=
		      ncclSuccess,
	      "nine buffers");
	CHECK(!request, "a refused receive left %p", request);
	request = stale_request(rig);
	CHECK(rig_raw_irecv(rig, pair->recv, 0, data, sizes, tags, mhandles, &request) !=
		      ncclSuccess,
	      "no buffer");
	CHECK(!request, "a refused receive left %p", request);
	if (rig->version > 8)
		return;
	request = STALE;
	sizes[1] = -1;
	CHECK(rig_raw_irecv(rig, pair->recv, 2, data, sizes, tags, mhandles, &request) !=
		      ncclSuccess,
	      "a negative size");
	CHECK(!request, "a refused receive left %p", request);
	request = STALE;
	CHECK(rig_raw_isend(rig, pair->send, buffer, -1, 0, from_mr, &request) != ncclSuccess,
	      "a negative size");
	CHECK(!request, "a refused send left %p", request);
	if (rig->version < 8) {
		request = STALE;
		CHECK(rig_reg_type(rig, pair->send, buffer, (size_t)-1, NCCL_PTR_HOST, &request) !=
			      ncclSuccess,
		      "a negative size was registered");
		CHECK(!request, "a refused registration left %p", request);
	}
}

int main(int argc, char **argv)
{
	static uint8_t from[8], to[8];
	static void *recv[4096];
	void *from_mr, *to_mr, *request, *data = to;
	struct rig rig;
	struct rig_pair pair;
	long size = 8;
	int tag = 0, posted = 0, none = 0;

	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &pair);
	from_mr = rig_reg(&rig, pair.send, from, sizeof(from));
	to_mr = rig_reg(&rig, pair.recv, to, sizeof(to));

	request = STALE;
	OK(rig_raw_isend(&rig, pair.send, from, 8, 0, from_mr, &request));
	CHECK(!request, "no receive is posted, yet isend left %p", request);
	check_refused(&rig, &pair, to, from_mr, to_mr);

	/* More receives than there is room for: the last ones must say so. */
	while (posted < 4096 && none < 100) {
		request = STALE;
		OK(rig_raw_irecv(&rig, pair.recv, 1, &data, &size, &tag, &to_mr, &request));
		CHECK(request != STALE, "irecv did not write *request");
		if (request) {
			recv[posted++] = request;
		} else {
			none++;
			usleep(2000); /* full, or busy with itself for a moment */
		}
	}
	CHECK(posted >= NCCL_NET_MAX_REQUESTS && posted < 4096, "%d receives in flight", posted);
	if (rig.version >= 9) {
		request = stale_request(&rig);
		OK(rig_raw_irecv(&rig, pair.recv, 1, &data, &size, &tag, &to_mr, &request));
		CHECK(!request, "irecv had no room and left %p", request);
	}
	for (int i = 0; i < posted; i++) {
		request = rig_isend(&rig, pair.send, from, 8, 0, from_mr);
		rig_wait(&rig, recv[i], NULL);
		rig_wait(&rig, request, NULL);
	}
	rig_exchange(&rig, &pair, 1000);
	OK(rig.plugin.dereg(pair.send, from_mr));
	OK(rig.plugin.dereg(pair.recv, to_mr));
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
