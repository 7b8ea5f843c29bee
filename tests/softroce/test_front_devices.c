/* SPDX-License-Identifier: BSD-3-Clause */
/* What SOFTROCE_DEVICES may say, and that nonsense is one line each and skipped. */
#include "softroce/devices.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complaints;
static char last[1024];

static void record_line(void *user, const char *line)
{
	complaints++;
	snprintf(last, sizeof(last), "%s", line);
}

static struct sr_device_spec specs[SR_DEVICES_MAX];

static void expect_devices(const char *text, int devices, int lines)
{
	int n;

	complaints = 0;
	n = sr_devices_parse(text, specs, SR_DEVICES_MAX, record_line, NULL);
	if (n == devices && complaints == lines)
		return;
	fprintf(stderr, "'%s': %d devices and %d lines, expected %d and %d; last line: %s\n", text,
		n, complaints, devices, lines, last);
	exit(1);
}

static void expect_true(int condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "not true: %s\n", what);
	exit(1);
}
#define EXPECT(condition) expect_true(condition, #condition)

int main(void)
{
	char text[INET6_ADDRSTRLEN], many[1024] = "lo";

	expect_devices(SR_DEVICES_DEFAULT, 2, 0);
	EXPECT(!strcmp(specs[0].name, "soft0") && !strcmp(specs[1].name, "soft1"));
	EXPECT(specs[0].kind == SR_DEVICE_SUBNET && specs[0].prefix == 16 &&
	       sr_gid_ipv4(specs[1].gid) == 0x7f020000);
	expect_devices("eth0, 10.1.2.3 ,rail=fe80::1,::1", 4, 0);
	EXPECT(specs[0].kind == SR_DEVICE_INTERFACE && !strcmp(specs[0].ifname, "eth0"));
	EXPECT(specs[1].kind == SR_DEVICE_ADDRESS &&
	       !strcmp(sr_gid_text(specs[1].gid, text), "10.1.2.3"));
	EXPECT(!strcmp(specs[2].name, "rail") &&
	       !strcmp(sr_gid_text(specs[2].gid, text), "fe80::1"));
	EXPECT(!strcmp(specs[3].name, "soft3"));
	/* The host part of a subnet does not matter. */
	expect_devices("127.9.8.7/24", 1, 0);
	EXPECT(!strcmp(sr_gid_text(specs[0].gid, text), "127.9.8.0"));
	expect_devices("", 0, 1);
	expect_devices("a=b=c,lo", 1, 1);
	expect_devices(",lo,", 1, 2);
	EXPECT(!strcmp(specs[0].name, "soft1"));
	expect_devices("10.0.0.0/8", 0, 1);
	EXPECT(strstr(last, "loopback") != NULL);
	expect_devices("127.0.0.0/31,127.0.0.0/7,127.0.0.0/,127.0.0.0/16x,127.0.0/16,127.0.0.0/-1,/"
		       ",127.0.0.0/"
		       "99999999999999999999",
		       0, 8);
	expect_devices("0.0.0.0,255.255.255.255,224.0.0.1,::,ff02::1", 0, 5);
	expect_devices("=lo,1x=lo,this-name-is-much-longer-than-libibverbs-likes=lo,a b=lo", 0, 4);
	expect_devices("x=lo,x=lo", 1, 1);
	expect_devices("an-interface-name-of-more-than-fifteen-letters,a:b,..", 0, 3);
	expect_devices("l\x01o", 0, 1);
	EXPECT(!strchr(last, 1)); /* control characters do not reach the terminal */
	for (int i = 0; i < SR_DEVICES_MAX; i++)
		strcat(many, ",lo");
	expect_devices(many, SR_DEVICES_MAX, 1);
	return 0;
}
