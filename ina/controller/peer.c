/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/peer.h"

#include "base/utf8.h"
#include "ina/frame/address.h"

#include <stdio.h>
#include <string.h>

/* %5B and %5D become brackets; the rest of what gRPC encodes does not occur in addresses. */
static void decode_brackets(const char *from, char *to, size_t size)
{
	size_t n = 0;

	while (*from && n + 1 < size) {
		if (from[0] == '%' && from[1] == '5' && (from[2] == 'B' || from[2] == 'D')) {
			to[n++] = from[2] == 'B' ? '[' : ']';
			from += 3;
		} else {
			to[n++] = *from++;
		}
	}
	to[n] = 0;
}

void ha_peer_host(const char *uri, char *host, size_t size)
{
	char text[128], *end;

	decode_brackets(uri, text, sizeof(text));
	if (!strncmp(text, "ipv4:", 5) && (end = strrchr(text, ':')) > text + 5) {
		*end = 0;
		snprintf(host, size, "%s", text + 5);
	} else if (!strncmp(text, "ipv6:[", 6) && (end = strrchr(text, ']')) != NULL) {
		*end = 0;
		snprintf(host, size, "%s",
			 strncasecmp(text + 6, "::ffff:", 7) || !strchr(text + 13, '.')
				 ? text + 6
				 : text + 13);
	} else {
		snprintf(host, size, "%s", strncmp(text, "unix", 4) ? "unknown" : "local");
	}
}

static bool name_sound(const char *name)
{
	int n;

	if (!*name || strlen(name) >= HA_TENANT_NAME || !strcmp(name, "local"))
		return false;
	for (; *name; name += n) {
		n = ha_utf8(name);
		if (!n || !ha_utf8_printable(name, n))
			return false;
	}
	return true;
}

bool ha_peer_caller(const char *uri, const char *name, const struct ha_settings *settings,
		    struct ha_caller *caller)
{
	char host[HA_TENANT_NAME];
	bool local;

	memset(caller, 0, sizeof(*caller));
	ha_peer_host(uri, host, sizeof(host));
	local = !strcmp(host, "local");
	if (!local)
		ha_address_parse(host, &caller->address);
	if (name && !name_sound(name))
		return false;
	snprintf(caller->tenant, sizeof(caller->tenant), "%s", name ? name : host);
	/* Only our own user and root may open the socket (the umask of main.c). */
	caller->admin = local || ha_names_have(&settings->admins, caller->tenant);
	caller->registrar = ha_names_have(&settings->registrars, caller->tenant);
	return true;
}
