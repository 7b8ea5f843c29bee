/* SPDX-License-Identifier: BSD-3-Clause */
#include "softroce/devices.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEM_MAX 128

struct parse {
	sr_devices_complain complain;
	void *user;
};

uint32_t sr_gid_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(gid, mapped, sizeof(mapped)))
		return 0;
	return (uint32_t)gid[12] << 24 | gid[13] << 16 | gid[14] << 8 | gid[15];
}

void sr_gid_from_ipv4(uint8_t gid[16], uint32_t address)
{
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	gid[12] = address >> 24;
	gid[13] = address >> 16;
	gid[14] = address >> 8;
	gid[15] = address;
}

const char *sr_gid_text(const uint8_t gid[16], char *buf)
{
	if (sr_gid_ipv4(gid))
		inet_ntop(AF_INET, gid + 12, buf, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid, buf, INET6_ADDRSTRLEN);
	return buf;
}

/* One line about one item; what the user wrote is shown with its control characters replaced. */
static void item_refuse(const struct parse *parse, const char *item, const char *why)
{
	char line[ITEM_MAX + 256], shown[ITEM_MAX];
	size_t i;

	if (!parse->complain)
		return;
	for (i = 0; item[i] && i < sizeof(shown) - 1; i++)
		shown[i] = isprint((unsigned char)item[i]) ? item[i] : '?';
	shown[i] = 0;
	snprintf(line, sizeof(line), "SOFTROCE_DEVICES: '%s' is skipped: %s", shown, why);
	parse->complain(parse->user, line);
}

bool sr_device_name_valid(const char *name)
{
	size_t n = strlen(name);

	if (!n || n >= SR_DEVICE_NAME_MAX || !isalpha((unsigned char)name[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
			return false;
	return true;
}

static bool ifname_valid(const char *name)
{
	size_t n = strlen(name);

	if (!n || n >= IFNAMSIZ || !strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isgraph((unsigned char)name[i]) || strchr("/:=,", name[i]))
			return false;
	return true;
}

static const char *subnet_parse(const char *what, const char *slash, struct sr_device_spec *spec)
{
	char address[INET_ADDRSTRLEN], *end;
	struct in_addr in;
	unsigned long prefix;
	uint32_t host;

	if ((size_t)(slash - what) >= sizeof(address))
		return "write a subnet as 127.1.0.0/16";
	memcpy(address, what, slash - what);
	address[slash - what] = 0;
	if (inet_pton(AF_INET, address, &in) != 1 || !isdigit((unsigned char)slash[1]))
		return "write a subnet as 127.1.0.0/16";
	prefix = strtoul(slash + 1, &end, 10);
	if (*end || prefix < 8 || prefix > 30)
		return "the prefix length must lie between 8 and 30, as in 127.1.0.0/16";
	host = ntohl(in.s_addr);
	if (host >> 24 != 127)
		return "only a loopback subnet (inside 127.0.0.0/8) can be shared out to "
		       "processes; name an address or "
		       "an interface instead";
	spec->kind = SR_DEVICE_SUBNET;
	spec->prefix = prefix;
	sr_gid_from_ipv4(spec->gid, host & (0xffffffffu << (32 - prefix)));
	return NULL;
}

static const char *what_parse(const char *what, struct sr_device_spec *spec)
{
	const char *slash = strchr(what, '/');
	struct in_addr in;

	if (!*what)
		return "it is empty; name an interface, an address or a loopback subnet";
	if (slash)
		return subnet_parse(what, slash, spec);
	if (inet_pton(AF_INET, what, &in) == 1) {
		uint32_t host = ntohl(in.s_addr);

		if (!host || host >> 28 >= 14)
			return "it is not the address of an interface";
		spec->kind = SR_DEVICE_ADDRESS;
		sr_gid_from_ipv4(spec->gid, host);
		return NULL;
	}
	if (inet_pton(AF_INET6, what, spec->gid) == 1) {
		static const uint8_t zero[16];

		if (!memcmp(spec->gid, zero, sizeof(zero)) || spec->gid[0] == 0xff)
			return "it is not the address of an interface";
		spec->kind = SR_DEVICE_ADDRESS;
		return NULL;
	}
	if (!ifname_valid(what))
		return "it is neither an interface, nor an address, nor a subnet such as "
		       "127.1.0.0/16";
	spec->kind = SR_DEVICE_INTERFACE;
	snprintf(spec->ifname, sizeof(spec->ifname), "%s", what);
	return NULL;
}

/* `item` is a writable copy; NULL or what is wrong with it. */
static const char *item_parse(const char *item, int place, struct sr_device_spec *spec)
{
	const char *equals = strchr(item, '=');
	const char *what = item;

	memset(spec, 0, sizeof(*spec));
	spec->place = (unsigned)place;
	if (equals) {
		size_t n = equals - item;

		if (n >= SR_DEVICE_NAME_MAX)
			return "the name before '=' is too long (31 characters)";
		memcpy(spec->name, item, n);
		if (!sr_device_name_valid(spec->name))
			return "the name before '=' must be letters, digits, '_' and '-', "
			       "a letter first";
		what = equals + 1;
	} else {
		snprintf(spec->name, sizeof(spec->name), "soft%d", place);
	}
	return what_parse(what, spec);
}

static bool name_taken(const struct sr_device_spec *specs, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(specs[i].name, name))
			return true;
	return false;
}

static void item_copy(char *item, const char *from, size_t len)
{
	for (; len && isspace((unsigned char)*from); len--)
		from++;
	while (len && isspace((unsigned char)from[len - 1]))
		len--;
	if (len >= ITEM_MAX)
		len = ITEM_MAX - 1;
	memcpy(item, from, len);
	item[len] = 0;
}

int sr_devices_parse(const char *text, struct sr_device_spec *out, int max,
		     sr_devices_complain complain, void *user)
{
	struct parse parse = { complain, user };
	int n = 0;

	for (int place = 0; text; place++) {
		size_t len = strcspn(text, ",");
		char item[ITEM_MAX];
		const char *why;
		struct sr_device_spec spec;

		item_copy(item, text, len);
		text = text[len] ? text + len + 1 : NULL;
		why = item_parse(item, place, &spec);
		if (!why && name_taken(out, n, spec.name))
			why = "another device has that name already";
		if (!why && n == max)
			why = "there are too many devices";
		if (why)
			item_refuse(&parse, item, why);
		else
			out[n++] = spec;
	}
	return n;
}
