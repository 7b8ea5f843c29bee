/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/xdp/port.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static bool driver_is(const char *name, const char *driver)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq r = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is;

	strncpy(r.ifr_name, name, IFNAMSIZ - 1);
	r.ifr_data = (void *)&info;
	is = fd >= 0 && !ioctl(fd, SIOCETHTOOL, &r) && !strcmp(info.driver, driver);
	if (fd >= 0)
		close(fd);
	return is;
}

static int attach_program(const struct ina_xdp_port *p, int program, bool native)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	int link = bpf_link_create(program, p->ifindex, BPF_XDP, &opts);

	return link < 0 ? -errno : link;
}

static void explain_error(const struct ina_xdp_port *p, int err, bool native, char *why,
			  size_t size)
{
	if (err == -EPERM)
		snprintf(why, size,
			 "%s: may not have an XDP program from us: run as root (CAP_NET_ADMIN)",
			 p->name);
	else if (err == -EBUSY || err == -EEXIST)
		snprintf(
			why, size,
			"%s: has an XDP program already: end that one, or `ip link set %s xdp off`",
			p->name, p->name);
	else if (err == -EOPNOTSUPP && native)
		snprintf(why, size, "%s: its driver has no native XDP: --mode=generic", p->name);
	else if (native)
		snprintf(why, size,
			 "%s: its driver does not take an XDP program (%s): is its MTU above a "
			 "page, or LRO on? Else --mode=generic",
			 p->name, strerror(-err));
	else
		snprintf(why, size, "%s: the kernel does not take an XDP program here: %s", p->name,
			 strerror(-err));
}

int ina_xdp_port_open(struct ina_xdp_port *p, const char *name, int program, enum ina_xdp_mode mode,
		      char *why, size_t size)
{
	memset(p, 0, sizeof(*p));
	p->link = -1;
	if (strlen(name) >= sizeof(p->name) || !(p->ifindex = (int)if_nametoindex(name))) {
		snprintf(why, size, "%.40s: there is no such interface here", name);
		return -ENODEV;
	}
	strcpy(p->name, name);
	p->native = mode == INA_XDP_NATIVE || (mode == INA_XDP_AUTO && !driver_is(name, "veth"));
	p->link = attach_program(p, program, p->native);
	if (p->link < 0 && p->native && mode == INA_XDP_AUTO && p->link != -EBUSY &&
	    p->link != -EEXIST && p->link != -EPERM) {
		p->native = false;
		p->link = attach_program(p, program, false);
	}
	if (p->link >= 0)
		return 0;
	explain_error(p, p->link, p->native, why, size);
	return p->link;
}

bool ina_xdp_port_tx_sleeps(const char *name, enum ina_xdp_mode mode)
{
	return mode == INA_XDP_NATIVE && driver_is(name, "veth");
}

void ina_xdp_port_close(struct ina_xdp_port *p)
{
	if (p->link >= 0)
		close(p->link);
	p->link = -1;
}
