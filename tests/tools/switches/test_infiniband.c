/* SPDX-License-Identifier: BSD-3-Clause */
/* What smpquery of infiniband-diags prints, as its library (libibmad 44) formats NodeInfo. */
#include "tools/switches/infiniband.h"

#include <string.h>

#include "base/check.h"

#define HEAD "# Node info: DR path slid 65535; dlid 65535; 0,1\n"
#define NODE(type, system, guid)                                     \
	HEAD "BaseVers:........................1\n"                  \
	     "ClassVers:.......................1\n"                  \
	     "NodeType:........................" type "\n"           \
	     "NumPorts:........................41\n"                 \
	     "SystemGuid:......................" system "\n"         \
	     "Guid:............................" guid "\n"           \
	     "PortGuid:........................0x0c42a10300a1b2c2\n" \
	     "PartCap:.........................8\n"                  \
	     "DevId:...........................0xd2f0\n"             \
	     "Revision:........................0x000000a0\n"         \
	     "LocalPort:.......................17\n"                 \
	     "VendorId:........................0x0002c9\n"

static struct switches_port take(const char *info, const char *description)
{
	struct switches_port port = { .line = { .device = "mlx5_0", .port = 1 } };

	switches_take_node(info, description, &port);
	return port;
}

/* All ASICs of a box are one switch: what takes the box along takes them. */
static void the_box_is_the_switch(void)
{
	struct switches_port p =
		take(NODE("Switch", "0x0c42a10300a1b2c0", "0x0c42a10300a1b2c2"),
		     "Node Description:....................MF0;leaf1:MQM9700/U1\n");

	CHECK_INT(p.answer, SWITCHES_FOUND);
	CHECK_TEXT(p.line.at.id, "guid:0c42a10300a1b2c0");
	CHECK_TEXT(p.line.at.port, "17");
	CHECK_TEXT(p.line.at.name, "MF0;leaf1:MQM9700/U1");
	CHECK_TEXT(p.line.at.source, "smpquery");
	p = take(NODE("Switch", "0x0000000000000000", "0x0c42a10300a1b2c2"), NULL);
	CHECK_TEXT(p.line.at.id, "guid:0c42a10300a1b2c2"); /* it has no other */
	CHECK_TEXT(p.line.at.name, "");
}

static void no_switch(void)
{
	struct switches_port p =
		take(NODE("Channel Adapter", "0x0c42a10300a1b2c0", "0x0c42a10300a1b2c2"), NULL);

	CHECK_INT(p.answer, SWITCHES_NONE);
	CHECK_TEXT(p.why, "its neighbor is no switch but a Channel Adapter");
	CHECK_TEXT(p.line.at.id, "");
	CHECK_TEXT(p.line.at.source, "smpquery");
}

static void no_node(void)
{
	static const char *const texts[] = { "", HEAD, "NodeType:\n", "NodeType:...Switch",
					     "NodeType:...Switch\nGuid:....nothing\n" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct switches_port p = take(texts[i], NULL);

		CHECK_INT(p.answer, SWITCHES_NOT_ASKED);
		CHECK_TEXT(p.why, "smpquery printed no NodeInfo");
	}
}

int main(void)
{
	the_box_is_the_switch();
	no_switch();
	no_node();
	return 0;
}
