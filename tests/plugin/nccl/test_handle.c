/* SPDX-License-Identifier: BSD-3-Clause */
/* listen fills at most 128 bytes, connect and accept write no byte of the handle's surroundings. */
#include "tests/plugin/nccl/rig.h"

#define GUARD 0xa5

struct guarded {
	uint8_t before[64];
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	uint8_t behind[256];
};

static void check_guards(const struct guarded *g, const char *when)
{
	for (size_t i = 0; i < sizeof(g->before); i++)
		CHECK(g->before[i] == GUARD, "%s: byte %zu before the handle", when,
		      sizeof(g->before) - i);
	for (size_t i = 0; i < sizeof(g->behind); i++)
		CHECK(g->behind[i] == GUARD, "%s: byte %zu behind the handle", when, i);
}

int main(int argc, char **argv)
{
	struct rig rig;
	struct guarded g, second;
	struct rig_deadline deadline = rig_deadline("connect and accept");
	void *listen, *other, *send = NULL, *recv = NULL;

	rig_open(&rig, argc, argv);
	for (int dev = 0; dev < rig.plugin.devices; dev++) {
		memset(&g, GUARD, sizeof(g));
		OK(rig.plugin.abi->listen(&rig.plugin, dev, g.handle, &listen));
		check_guards(&g, "listen");
		OK(rig.plugin.close_listen(listen));
	}
	memset(&g, GUARD, sizeof(g));
	memset(&second, GUARD, sizeof(second));
	OK(rig.plugin.abi->listen(&rig.plugin, 0, g.handle, &listen));
	OK(rig.plugin.abi->listen(&rig.plugin, 0, second.handle, &other));
	CHECK(memcmp(g.handle, second.handle, sizeof(g.handle)),
	      "two listeners gave the same handle");
	while (!send || !recv) {
		if (!send)
			OK(rig.plugin.abi->connect(&rig.plugin, 0, g.handle, &send));
		if (!recv)
			OK(rig.plugin.abi->accept(&rig.plugin, listen, &recv));
		rig_pause(&deadline);
	}
	check_guards(&g, "connect");
	OK(rig.plugin.close_send(send));
	OK(rig.plugin.close_recv(recv));
	OK(rig.plugin.close_listen(listen));
	OK(rig.plugin.close_listen(other));
	check_guards(&g, "close");
	rig_close(&rig);
	return 0;
}
