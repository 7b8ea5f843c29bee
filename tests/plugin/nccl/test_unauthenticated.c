/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handle that is not ours is refused with an error and one clear line, at once: zeros, noise,
 * another plugin's, a newer version's. One that looks right but whose nonce is not the listener's
 * is refused by the listener, who stays in service.
 */
#include "tests/plugin/nccl/peer.h"
#include "tests/plugin/nccl/rig.h"

static void check_refused(struct rig *rig, void *handle, const char *what)
{
	int warned = rig_warnings();
	void *send = NULL;

	CHECK(rig->plugin.abi->connect(&rig->plugin, 0, handle, &send) != ncclSuccess,
	      "%s was not refused", what);
	CHECK(!send, "%s: an error with a comm", what);
	CHECK(rig_warnings() == warned + 1, "%s: %d lines in the log", what,
	      rig_warnings() - warned);
}

static void wrong_nonce(struct rig *rig)
{
	struct rig_deadline deadline = rig_deadline("the refusal of a wrong nonce");
	uint8_t forged[NCCL_NET_HANDLE_MAXSIZE];
	struct ha_wire_handle *h = (struct ha_wire_handle *)forged;
	ncclResult_t result = ncclSuccess;
	struct rig_pair pair = { .recv = NULL };
	int warned = rig_warnings();
	void *send = NULL;

	OK(rig->plugin.abi->listen(&rig->plugin, 0, pair.handle, &pair.listen));
	memcpy(forged, pair.handle, sizeof(forged));
	h->nonce ^= 1;
	while (result == ncclSuccess) {
		OK(rig->plugin.abi->accept(&rig->plugin, pair.listen, &pair.recv));
		CHECK(!pair.recv, "a wrong nonce was accepted");
		result = rig->plugin.abi->connect(&rig->plugin, 0, forged, &send);
		CHECK(!send, "connected with a wrong nonce");
		rig_pause(&deadline);
	}
	CHECK(rig_warnings() > warned && rig_logged("its nonce is not this listener's"),
	      "a refusal without a line in the log of each end");
	rig_pair_connect(rig, &pair, 0);
	rig_exchange(rig, &pair, 1000);
	rig_pair_close(rig, &pair);
}

int main(int argc, char **argv)
{
	uint8_t real[NCCL_NET_HANDLE_MAXSIZE], handle[NCCL_NET_HANDLE_MAXSIZE] = { 0 };
	struct ha_wire_handle *h = (struct ha_wire_handle *)handle;
	struct rig rig;
	void *listen;

	rig_open(&rig, argc, argv);
	check_refused(&rig, handle, "a handle of zeros");
	for (unsigned i = 0; i < 8; i++) {
		rig_fill(handle, sizeof(handle), i);
		check_refused(&rig, handle, "noise");
	}
	OK(rig.plugin.abi->listen(&rig.plugin, 0, real, &listen));
	memcpy(handle, real, sizeof(handle));
	h->magic ^= 0x00010000;
	check_refused(&rig, handle, "another magic");
	memcpy(handle, real, sizeof(handle));
	h->version = h->version_min = HA_WIRE_VERSION + 1;
	check_refused(&rig, handle, "a version that we do not have");
	memcpy(handle, real, sizeof(handle));
	h->oob.family = 9;
	check_refused(&rig, handle, "an unknown address family");
	OK(rig.plugin.close_listen(listen));
	wrong_nonce(&rig);
	rig_close(&rig);
	return 0;
}
