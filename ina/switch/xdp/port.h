/* SPDX-License-Identifier: BSD-3-Clause */
/* port.h - an interface of the kernel with the program on it */
#ifndef INA_XDP_PORT_H
#define INA_XDP_PORT_H

#include <stdbool.h>
#include <stddef.h>

enum ina_xdp_mode {
	/*
	 * native where the driver has it; generic on veth, whose native mode depends on the other
	 * end
	 */
	INA_XDP_AUTO,
	INA_XDP_NATIVE, /* in the driver */
	INA_XDP_GENERIC /* after it: any interface, slower */
};

struct ina_xdp_port {
	char name[16];
	int ifindex;
	/*
	 * while it is open the program is on; the kernel closes it with the process, however that
	 * ends
	 */
	int link;
	bool native;
};

/* 0, or a negative errno and one line that says what to do. */
int ina_xdp_port_open(struct ina_xdp_port *port, const char *name, int program,
		      enum ina_xdp_mode mode, char *why, size_t size);
/*
 * Out of this port XDP_TX may wake nobody: a veth in native mode. The driver (Linux 6.1 to 6.18,
 * veth_xdp_flush()) puts the frame where the other end reads, and rings its bell only if that end
 * has an XDP program too; one that reads because it has GRO on sleeps until something else comes. A
 * redirect rings always.
 */
bool ina_xdp_port_tx_sleeps(const char *name, enum ina_xdp_mode mode);
void ina_xdp_port_close(struct ina_xdp_port *port);

#endif
