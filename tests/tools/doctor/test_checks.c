/* SPDX-License-Identifier: BSD-3-Clause */
/* Every check of `ha doctor`, on hosts that are made up: it finds what is wrong, names the command,
 * and finds nothing where nothing is. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/version.h"
#include "tests/rdma/topo/machine.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/library.h"
#include "tools/doctor/show.h"

static struct machine m;
static struct ha_standby standby;
static struct doctor_host host;
static struct doctor_report report;

/* ---- an environment ---- */

static const char *variable[8][2];

static const char *fake_env(const char *name)
{
	for (int i = 0; i < 8 && variable[i][0]; i++)
		if (!strcmp(variable[i][0], name))
			return variable[i][1];
	return NULL;
}

static void set_variable(const char *name, const char *value)
{
	int i = 0;

	while (variable[i][0] && strcmp(variable[i][0], name))
		i++;
	variable[i][0] = name;
	variable[i][1] = value;
}

/* ---- hosts ---- */

/* A host where nothing is wrong; the machine is made and discovered. */
static void begin_host(void)
{
	memset(&host, 0, sizeof(host));
	memset(variable, 0, sizeof(variable));
	CHECK_INT(ha_standby_compute(&m.topo, &standby), 0);
	host = (struct doctor_host) {
		.config = &m.config,
		.topo = &m.topo,
		.standby = &standby,
		.verbs = "libibverbs.so.1",
		.plugin = { .asked = true,
			    .found = true,
			    .path = "/usr/lib/libnccl-net-ha.so",
			    .net = 0x1fc0,
			    .network = "HA" },
		.nccl = { .asked = true,
			  .found = true,
			  .name = "libnccl.so.2",
			  .path = "/usr/lib/libnccl.so.2",
			  .nccl_version = 22907 },
		.own_plugin = "/opt/hawser/lib/libnccl-net-ha.so",
		.default_name = true,
		.memlock = DOCTOR_UNLIMITED,
		.memlock_hard = DOCTOR_UNLIMITED,
		.nofile = 65536,
		.nofile_hard = 65536,
		.shm_free = DOCTOR_UNLIMITED,
		.oob_name = "eth0",
		.oob_address = "10.0.0.1",
		.env = fake_env,
	};
	strcpy(host.plugin.hawser, ha_version);
	set_variable("NCCL_NET", "HA");
}

static void run_checks(void)
{
	doctor_report_free(&report);
	doctor_check_all(&host, &report);
	CHECK(!report.lost);
}

static void end_host(void)
{
	doctor_report_free(&report);
	machine_end(&m);
}

/* The only finding of this check about this subject (NULL: any). */
static const struct doctor_finding *find_finding(const char *check, const char *subject)
{
	const struct doctor_finding *found = NULL;

	for (size_t i = 0; i < report.n; i++) {
		const struct doctor_finding *f = &report.list[i];

		if (strcmp(f->check, check) || (subject && strcmp(f->subject, subject)))
			continue;
		if (f->severity == DOCTOR_FINE && found)
			continue;
		found = f;
	}
	if (!found) {
		fprintf(stderr, "no finding %s of %s\n", check, subject ? subject : "anything");
		exit(1);
	}
	return found;
}

static int count_of(const char *check)
{
	int n = 0;

	for (size_t i = 0; i < report.n; i++)
		n += !strcmp(report.list[i].check, check);
	return n;
}

/* Looks, and expects one finding of that severity whose mend has `mend`, and nothing else that is
 * wrong. */
static void expect_finding(enum doctor_severity severity, const char *check, const char *subject,
			   const char *mend)
{
	const struct doctor_finding *f;
	unsigned wrong;

	run_checks();
	f = find_finding(check, subject);
	wrong = report.count[DOCTOR_NOTE] + report.count[DOCTOR_WARNING] +
		report.count[DOCTOR_ERROR];
	if (f->severity != severity || !strstr(f->mend, mend) || wrong != 1 || !*f->cost) {
		doctor_print(&host, &report, true, stderr);
		fprintf(stderr, "expected one %s: %s, mend with '%s'\n",
			doctor_severity_name(severity), check, mend);
		exit(1);
	}
}

static void expect_nothing(void)
{
	run_checks();
	if (report.count[DOCTOR_NOTE] + report.count[DOCTOR_WARNING] + report.count[DOCTOR_ERROR]) {
		doctor_print(&host, &report, false, stderr);
		fprintf(stderr, "expected nothing\n");
		exit(1);
	}
}

static void begin_eight(void)
{
	machine_eight_by_rail(&m);
	for (int i = 0; i < m.topo.nports; i++) {
		m.topo.devices[i].relaxed_ordering = true; /* the fake library is an old one */
		m.topo.devices[i].port_attr.max_mtu = m.topo.devices[i].address.mtu = IBV_MTU_4096;
	}
	begin_host();
}

static int first_port(void)
{
	return machine_port(&m, "mlx5_0:1");
}

static void file_of(int port, const char *name, const char *text)
{
	char path[HA_DEVICE_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", m.topo.devices[port].place.physical_path, name);
	tree_file(&m.tree, path, text);
}

static void link_of(int port, const char *which, const char *speed, const char *width)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_link_speed", which);
	file_of(port, name, speed);
	snprintf(name, sizeof(name), "%s_link_width", which);
	file_of(port, name, width);
}

/* ---- loading ---- */

static void plugin_is_checked(void)
{
	begin_eight();
	expect_nothing();
	CHECK_INT(find_finding("plugin", NULL)->severity, DOCTOR_FINE);
	CHECK(strstr(find_finding("nccl", NULL)->text, "NCCL 2.29.7 calls version 11"));

	host.plugin = (struct doctor_library) { .asked = true };
	expect_finding(DOCTOR_ERROR, "plugin", "NCCL_NET_PLUGIN",
		       "export NCCL_NET_PLUGIN=/opt/hawser/lib/libnccl-net-ha.so");
	set_variable("NCCL_NET_PLUGIN", "ha");
	strcpy(host.plugin.error, "/lib/libc.so.6: version `GLIBC_2.34' not found");
	expect_finding(DOCTOR_ERROR, "plugin", "NCCL_NET_PLUGIN", "export NCCL_NET_PLUGIN=/opt");
	CHECK(strstr(find_finding("plugin", NULL)->text, "GLIBC_2.34"));
	host.own_plugin[0] = 0;
	expect_finding(DOCTOR_ERROR, "plugin", "NCCL_NET_PLUGIN", "install libnccl-net-ha.so");
	set_variable("NCCL_NET_PLUGIN", "none");
	expect_finding(DOCTOR_ERROR, "plugin", "NCCL_NET_PLUGIN", "install libnccl-net-ha.so");
	set_variable("NCCL_NET_PLUGIN", "aws-ofi");
	host.plugin =
		(struct doctor_library) { .found = true, .net = 1 << 10, .network = "Libfabric" };
	expect_finding(DOCTOR_ERROR, "plugin", NULL, "install");
	host.plugin = (struct doctor_library) { .found = true };
	run_checks();
	CHECK(strstr(find_finding("plugin", NULL)->text, "no network interface"));
	end_host();
}

static void another_version(void)
{
	begin_eight();
	strcpy(host.plugin.hawser, "0.0.9");
	expect_finding(DOCTOR_WARNING, "plugin.version", NULL, "of one version");
	CHECK(strstr(find_finding("plugin.version", NULL)->text,
		     "the plugin is hawser 0.0.9, this"));
	host.plugin.hawser[0] = 0;
	expect_finding(DOCTOR_WARNING, "plugin.version", NULL, "of one version");
	end_host();
}

static void second_communicator(void)
{
	begin_eight();
	host.default_name = false;
	expect_finding(DOCTOR_WARNING, "plugin.again", NULL, "NCCL_NET_PLUGIN_REF_COUNT=1");
	set_variable("NCCL_NET_PLUGIN_REF_COUNT", "1");
	expect_nothing();
	variable[1][0] = NULL;
	host.nccl.nccl_version = 22203; /* one that does not forget */
	expect_nothing();
	end_host();
}

static void nccl_versions(void)
{
	static const struct {
		int nccl, net;
	} known[] = { { 21210, 0 },  { 21304, 6 },  { 21806, 6 }, { 21904, 7 },
		      { 22005, 8 },  { 22304, 8 },  { 22403, 9 }, { 22602, 10 },
		      { 22803, 11 }, { 22907, 11 }, { 23007, 12 } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		CHECK_INT(doctor_nccl_interface(known[i].nccl), known[i].net);
	CHECK_INT(doctor_highest_version(1 << 8 | 1 << 6, 11), 8);
	CHECK_INT(doctor_highest_version(1 << 8, 7), 0);

	begin_eight();
	host.nccl.nccl_version = 21210;
	expect_finding(DOCTOR_ERROR, "nccl", NULL, "NCCL 2.13");
	host.nccl = (struct doctor_library) { .asked = true, .name = "libnccl.so.2" };
	expect_finding(DOCTOR_NOTE, "nccl", NULL, "--nccl");
	host.nccl.found = true;
	expect_finding(DOCTOR_NOTE, "nccl", NULL, "--nccl");
	end_host();
}

static void verbs_are_checked(void)
{
	begin_eight();
	tree_nic(&m.tree, "bnxt_re0", "/sys/devices/pci0000:90/0000:90:00.0", 0);
	expect_finding(DOCTOR_WARNING, "verbs.provider", "bnxt_re0", "ibverbs-providers");
	end_host();

	begin_eight();
	host.verbs = NULL;
	strcpy(host.from_devices.text[0], "libibverbs.so.1 cannot be opened");
	host.from_devices.n = 1;
	expect_finding(DOCTOR_ERROR, "verbs", NULL, "libibverbs1");
	end_host();

	begin_eight();
	host.verbs = NULL;
	strcpy(m.config.verbs, "soft");
	expect_finding(DOCTOR_ERROR, "verbs", NULL, "hawser-softroce");
	strcpy(m.config.verbs, "system");
	end_host();
}

/* ---- environment ---- */

static void environment_is_checked(void)
{
	begin_eight();
	variable[0][0] = NULL;
	expect_finding(DOCTOR_WARNING, "environment.net", NULL, "export NCCL_NET=HA");
	set_variable("NCCL_NET", "IB");
	expect_finding(DOCTOR_ERROR, "environment.net", NULL, "export NCCL_NET=HA");
	set_variable("NCCL_NET", "ha");
	expect_nothing();

	m.config.ib_disable = true;
	expect_finding(DOCTOR_ERROR, "environment.disabled", NULL, "unset NCCL_IB_DISABLE");
	m.config.ib_disable = false;
	m.config.enable_backup = false;
	expect_finding(DOCTOR_WARNING, "environment.failover", NULL, "unset HA_NCCL_ENABLE_BACKUP");
	m.config.enable_backup = true;

	strcpy(host.from_config.text[0], "NCCL_IB_TIMEOUT=22 is set, but not read");
	host.from_config.n = 1;
	expect_finding(DOCTOR_WARNING, "environment", NULL, "ha config");
	host.from_config.n = 0;

	m.config.qp_timeout = m.config.force_ib_timeout = 20; /* NCCL's own: 30 s */
	expect_finding(DOCTOR_WARNING, "timeouts", NULL, "unset HA_NCCL_FORCE_IB_TIMEOUT");
	m.config.qp_timeout = m.config.force_ib_timeout = 10;
	expect_finding(DOCTOR_WARNING, "timeouts", NULL, "unset HA_NCCL_FORCE_IB_TIMEOUT");
	end_host();
}

static void limits_are_checked(void)
{
	begin_eight();
	host.memlock = 65536;
	expect_finding(DOCTOR_ERROR, "memlock", NULL, "ulimit -l unlimited");
	host.memlock = host.memlock_hard = UINT64_C(16) << 30;
	expect_finding(DOCTOR_WARNING, "memlock", NULL, "limits.conf");
	host.memlock_exempt = true; /* CAP_IPC_LOCK */
	expect_nothing();
	host.memlock_exempt = false;
	host.memlock = DOCTOR_UNLIMITED;
	host.nofile = 1024;
	expect_finding(DOCTOR_WARNING, "nofile", NULL, "ulimit -n 65536");
	CHECK(strstr(find_finding("nofile", NULL)->text, "480 connections"));
	host.nofile_hard = 1024;
	expect_finding(DOCTOR_WARNING, "nofile", NULL, "LimitNOFILE");
	host.nofile = 65536;
	host.shm_free = 64 << 20;
	expect_finding(DOCTOR_WARNING, "shm", NULL, "--shm-size");
	CHECK(strstr(find_finding("shm", NULL)->text, "64M"));
	host.shm_free = DOCTOR_UNLIMITED;
	strcpy(host.oob_name, "lo");
	expect_finding(DOCTOR_WARNING, "oob", "lo", "ip link set");
	host.oob_name[0] = 0;
	expect_finding(DOCTOR_ERROR, "oob", NULL, "NCCL_SOCKET_IFNAME");
	end_host();
}

/* ---- ports ---- */

static void ports_are_checked(void)
{
	int a;

	begin_eight();
	a = first_port();
	m.topo.devices[a].address.mtu = IBV_MTU_1024;
	tree_file(&m.tree, "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "ens1\n");
	expect_finding(DOCTOR_WARNING, "port.mtu", "mlx5_0:1", "ip link set dev ens1 mtu 9000");
	m.topo.devices[a].address.mtu = IBV_MTU_4096;

	m.topo.devices[a].address.roce_version = 1;
	run_checks(); /* its partner finds it on another network, too */
	CHECK(strstr(find_finding("port.gid", "mlx5_0:1")->mend, "unset NCCL_IB_GID_INDEX"));
	CHECK_INT(find_finding("standby.network", "mlx5_1:1")->severity, DOCTOR_WARNING);
	m.topo.devices[a].address.roce_version = 2;
	m.topo.devices[a].apm_enabled = true;
	expect_finding(DOCTOR_WARNING, "port.apm", "mlx5_0:1",
		       "echo 0 > /sys/class/infiniband/mlx5_0/ports/1/apm_enable");
	m.topo.devices[a].apm_enabled = false;

	strcpy(host.from_devices.text[0], "mlx5_9: cannot open the device");
	host.from_devices.n = 1;
	expect_finding(DOCTOR_WARNING, "devices", NULL, "ha topo");
	end_host();
}

/* One of several ports of a model runs slower; an odd model may. */
static void speeds_are_checked(void)
{
	int a, b;

	begin_eight();
	a = machine_port(&m, "mlx5_0:1");
	b = machine_port(&m, "mlx5_1:1");
	m.topo.devices[a].speed_mbps = 200000;
	expect_nothing();
	for (int i = 0; i < 2; i++) {
		file_of(i ? b : a, "vendor", "0x15b3\n");
		file_of(i ? b : a, "device", "0x1021\n");
	}
	expect_finding(DOCTOR_WARNING, "port.speed", "mlx5_0:1", "compare cable");
	CHECK(strstr(find_finding("port.speed", "mlx5_0:1")->text,
		     "200 Gb/s, mlx5_1:1 of the same model at 400"));
	file_of(a, "device", "0x101b\n");
	expect_nothing();
	file_of(a, "device", "0x1021\n");
	m.topo.devices[a].speed_mbps = 400000;
	strcpy(m.topo.devices[a].attr.fw_ver, "28.40.1000");
	strcpy(m.topo.devices[b].attr.fw_ver, "28.39.2048");
	expect_finding(DOCTOR_NOTE, "port.firmware", NULL, "update");
	end_host();
}

/* What a bad cable has left in the port's counters; 0 is nothing, and so is no file. */
static void port_errors(void)
{
	begin_eight();
	tree_file(&m.tree, "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "0\n");
	tree_file(&m.tree, "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "0\n");
	expect_nothing();
	tree_file(&m.tree, "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "2\n");
	expect_finding(DOCTOR_NOTE, "port.errors", "mlx5_0:1", "mlxlink -d mlx5_0");
	tree_file(&m.tree, "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "31\n");
	expect_finding(DOCTOR_WARNING, "port.errors", "mlx5_0:1", "perfquery -R");
	CHECK(strstr(find_finding("port.errors", "mlx5_0:1")->text,
		     "31 symbol errors, link down 2 times since"));
	end_host();
}

static void ports_down(void)
{
	begin_eight();
	ha_topo_release(&m.topo);
	machine_device(&m, "mlx5_3")->ports[0].state = IBV_PORT_DOWN;
	memset(machine_device(&m, "mlx5_4")->ports[0].gids, 0,
	       sizeof(machine_device(&m, "mlx5_4")->ports[0].gids));
	machine_discover(&m);
	for (int i = 0; i < m.topo.nports; i++) {
		m.topo.devices[i].relaxed_ordering = true;
		m.topo.devices[i].port_attr.max_mtu = m.topo.devices[i].address.mtu;
	}
	begin_host();
	run_checks();
	CHECK(strstr(find_finding("port.state", "mlx5_3:1")->mend, "`ibstat mlx5_3 1`"));
	CHECK(strstr(find_finding("port.address", "mlx5_4:1")->mend, "ip address add"));
	tree_file(&m.tree, "/sys/class/infiniband/mlx5_3/device/net/ens7/address", "");
	run_checks();
	CHECK(strstr(find_finding("port.state", "mlx5_3:1")->mend, "ip link set dev ens7 up"));
	end_host();
}

static void infiniband_is_checked(void)
{
	machine_begin(&m);
	machine_ib(&m, "mlx5_0", "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0", 0, 1, 1);
	machine_ib(&m, "mlx5_1", "/sys/devices/pci0000:20/0000:20:02.0/0000:22:00.0", 0, 2, 2);
	machine_ib(&m, "mlx5_2", "/sys/devices/pci0000:20/0000:20:03.0/0000:23:00.0", 0, 3, 3);
	m.devices[0].ports[0].width = 1;
	m.devices[2].ports[0].state = IBV_PORT_INIT;
	machine_discover(&m);
	for (int i = 0; i < m.topo.nports; i++) {
		m.topo.devices[i].relaxed_ordering = true;
		m.topo.devices[i].port_attr.max_mtu = m.topo.devices[i].address.mtu;
	}
	begin_host();
	run_checks();
	CHECK_INT(find_finding("port.width", "mlx5_0:1")->severity, DOCTOR_WARNING);
	CHECK(strstr(find_finding("port.state", "mlx5_2:1")->mend, "opensm"));
	end_host();
}

/* ---- standbys ---- */

static void standbys_are_checked(void)
{
	machine_one_card(&m);
	for (int i = 0; i < m.topo.nports; i++) {
		m.topo.devices[i].relaxed_ordering = true;
		m.topo.devices[i].port_attr.max_mtu = m.topo.devices[i].address.mtu;
	}
	begin_host();
	run_checks();
	CHECK_INT(report.count[DOCTOR_WARNING], 2);
	CHECK(strstr(find_finding("standby.shared", m.topo.ndevices ? "mlx5_0:1" : "")->text,
		     "on the same card"));
	end_host();

	machine_software(&m, 1);
	begin_host();
	expect_finding(DOCTOR_WARNING, "standby", "soft0:1", "second port");
	strcpy(m.config.ib_hca, "soft0");
	expect_finding(DOCTOR_WARNING, "standby", "soft0:1", "NCCL_IB_HCA=soft0");
	end_host();

	machine_software(&m, 2);
	begin_host();
	host.memlock = 65536; /* a software NIC locks none */
	expect_nothing();
	m.topo.devices[1].speed_mbps = m.topo.devices[0].speed_mbps / 4;
	expect_finding(DOCTOR_WARNING, "standby.speed", "soft0:1", "HA_NCCL_ENABLE_FAILBACK=1");
	end_host();
}

/* Where the file of `ha switches` has the same switch for a port and its standby. */
static void leaf_switches_are_checked(void)
{
	machine_software(&m, 2);
	begin_host();
	host.memlock = 65536;
	for (int i = 0; i < 2; i++) {
		strcpy(m.topo.devices[i].place.at.id, "mac:1");
		strcpy(m.topo.devices[i].place.at.name, "leaf1");
	}
	run_checks();
	CHECK_INT(report.count[DOCTOR_NOTE], 2);
	CHECK_INT(find_finding("standby.switch", "soft0:1")->severity, DOCTOR_NOTE);
	CHECK(strstr(find_finding("standby.switch", "soft1:1")->text,
		     "its standby soft0:1 hangs on the same leaf switch leaf1 (mac:1)"));
	strcpy(m.topo.devices[1].place.at.id, "mac:2");
	expect_nothing();
	m.topo.devices[1].place.at.id[0] = 0; /* not known */
	expect_nothing();
	end_host();
}

/* ---- PCI ---- */

static void pci_links(void)
{
	char path[HA_DEVICE_PATH_MAX + 64], *slash;
	int a;

	begin_eight();
	a = first_port();
	link_of(a, "max", "32.0 GT/s PCIe\n", "16\n");
	link_of(a, "current", "32.0 GT/s PCIe\n", "16\n");
	expect_nothing();
	CHECK_INT(find_finding("pci.link", "mlx5_0")->severity, DOCTOR_FINE);
	link_of(a, "current", "32.0 GT/s PCIe\n", "8\n"); /* 252 Gb/s for a port of 400 */
	expect_finding(DOCTOR_ERROR, "pci.link", "mlx5_0", "reseat");
	CHECK(strstr(find_finding("pci.link", "mlx5_0")->cost,
		     "252 Gb/s instead of 504, for ports of 400"));
	m.topo.devices[a].speed_mbps = 200000;
	expect_finding(DOCTOR_WARNING, "pci.link", "mlx5_0", "reseat");
	m.topo.devices[a].speed_mbps = 400000;

	/* The slot can no more: the link is trained as it should be, and too slow. */
	snprintf(path, sizeof(path), "%s", m.topo.devices[a].place.physical_path);
	slash = strrchr(path, '/');
	strcpy(slash, "/max_link_width");
	tree_file(&m.tree, path, "8\n");
	strcpy(slash, "/max_link_speed");
	tree_file(&m.tree, path, "32.0 GT/s PCIe\n");
	expect_finding(DOCTOR_WARNING, "pci.slot", "mlx5_0", "more lanes");

	link_of(a, "current", "Unknown\n", "0\n"); /* a virtual machine */
	expect_nothing();
	end_host();
}

/* A configuration space whose extended capabilities are: AER, then ACS with this control word. */
static void write_config(const char *path, unsigned control, size_t size)
{
	static unsigned char config[4096];
	char full[600];
	FILE *f;

	memset(config, 0, sizeof(config));
	config[0x100] = 0x01;
	config[0x102] = 0x01;
	config[0x103] = 0x20; /* next: 0x200 */
	config[0x200] = 0x0d;
	config[0x206] = (unsigned char)control;
	tree_file(&m.tree, path, "");
	snprintf(full, sizeof(full), "%s%s", m.tree.root, path);
	f = fopen(full, "w");
	CHECK(f && fwrite(config, 1, size, f) == size && !fclose(f));
}

static void acs_is_checked(void)
{
	char bridge[HA_DEVICE_PATH_MAX + 64];
	int a;

	begin_eight();
	a = first_port();
	for (int i = 0; i < m.topo.nports; i++)
		m.topo.devices[i].dma_buf = true;
	snprintf(bridge, sizeof(bridge), "%s", m.topo.devices[a].place.physical_path);
	strcpy(strrchr(bridge, '/'), "/config");
	write_config(bridge, 0x1d, 4096);
	expect_nothing(); /* without a GPU nothing is redirected */
	tree_file(&m.tree, "/sys/module/nvidia/version", "550");
	expect_finding(DOCTOR_WARNING, "pci.acs", "mlx5_0",
		       "setpci -s 0000:17:00.0 ECAP_ACS+0x6.w=0000");
	write_config(bridge, 0x01, 4096); /* source validation alone */
	expect_nothing();
	write_config(bridge, 0x1d, 64); /* what everybody may read */
	expect_finding(DOCTOR_NOTE, "pci.acs", "mlx5_0", "sudo ha doctor");
	end_host();
}

static void gpu_memory_is_checked(void)
{
	int a;

	begin_eight();
	a = first_port();
	for (int i = 0; i < m.topo.nports; i++)
		m.topo.devices[i].dma_buf = i != a;
	m.topo.devices[a].peer_memory = false;
	tree_file(&m.tree, "/sys/module/nvidia/version", "550");
	expect_finding(DOCTOR_WARNING, "gpu.direct", "mlx5_0", "modprobe nvidia_peermem");
	m.topo.devices[a].peer_memory = true;
	expect_nothing();
	m.topo.devices[a].relaxed_ordering = false;
	expect_finding(DOCTOR_NOTE, "pci.ordering", "mlx5_0", "rdma-core 28");
	m.config.ib_pci_relaxed_ordering = 0;
	expect_finding(DOCTOR_NOTE, "pci.ordering", "mlx5_0", "unset NCCL_IB_PCI_RELAXED_ORDERING");
	m.topo.devices[a].relaxed_ordering = true;
	file_of(a, "iommu_group/type", "identity\n");
	expect_nothing();
	file_of(a, "iommu_group/type", "DMA-FQ\n");
	expect_finding(DOCTOR_WARNING, "pci.iommu", "mlx5_0", "iommu=pt");
	file_of(a, "iommu_group/type", "identity\n");

	tree_file(&m.tree, "/proc/sys/kernel/numa_balancing", "1\n");
	m.topo.devices[a].place.numa_node = -1;
	run_checks();
	CHECK(!count_of("numa.node") && !count_of("numa.balancing")); /* there is one node */
	tree_file(&m.tree, "/sys/devices/system/node/node0/cpulist", "0\n");
	tree_file(&m.tree, "/sys/devices/system/node/node1/cpulist", "1\n");
	run_checks();
	CHECK(strstr(find_finding("numa.balancing", NULL)->mend,
		     "sysctl -w kernel.numa_balancing=0"));
	CHECK(*find_finding("numa.node", "mlx5_0")->mend);
	CHECK_INT(find_finding("standby.distance", "mlx5_0:1")->severity, DOCTOR_NOTE);
	end_host();
}

static void daemons_are_checked(void)
{
	begin_eight();
	host.agent = host.backend = DOCTOR_DAEMON_ANSWERS;
	expect_nothing();
	host.agent = DOCTOR_DAEMON_SILENT;
	expect_finding(DOCTOR_NOTE, "agent", NULL, "systemctl start ha-agent");
	host.agent = DOCTOR_DAEMON_ABSENT;
	expect_nothing();
	m.config.policy = HA_POLICY_AGENT;
	expect_finding(DOCTOR_WARNING, "agent", NULL, "systemctl start ha-agent");
	m.config.policy = HA_POLICY_AUTO;
	host.backend = DOCTOR_DAEMON_ABSENT;
	set_variable("NETCCL_BACKEND", "/run/hawser/ina.sock");
	expect_finding(DOCTOR_WARNING, "backend", "/run/hawser/ina.sock",
		       "systemctl start ha-backend");
	end_host();
}

int main(void)
{
	plugin_is_checked();
	another_version();
	second_communicator();
	nccl_versions();
	verbs_are_checked();
	environment_is_checked();
	limits_are_checked();
	ports_are_checked();
	speeds_are_checked();
	port_errors();
	ports_down();
	infiniband_is_checked();
	standbys_are_checked();
	leaf_switches_are_checked();
	pci_links();
	acs_is_checked();
	gpu_memory_is_checked();
	daemons_are_checked();
	return 0;
}
