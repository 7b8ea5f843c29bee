/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/libcurl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

static bool find_calls(void *library, struct libcurl *calls)
{
	static const struct {
		const char *name;
		size_t offset;
	} list[] = {
#define PLACE(name) { "curl_" #name, offsetof(struct libcurl, name) },
		LIBCURL_CALLS(PLACE)
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		void *call = dlsym(library, list[i].name);

		if (!call)
			return false;
		*(void **)((char *)calls + list[i].offset) = call;
	}
	return true;
}

const struct libcurl *libcurl_open(const char **why)
{
	/* The same calls over GnuTLS, which libmicrohttpd has loaded already, and over OpenSSL. */
	static const char *const names[] = { "libcurl-gnutls.so.4", "libcurl.so.4" };
	static struct libcurl calls;
	static bool ready;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !ready; i++) {
		void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

		ready = library && find_calls(library, &calls) &&
			!calls.global_init(CURL_GLOBAL_DEFAULT);
	}
	*why = "libcurl is needed and not installed (Debian package libcurl3-gnutls), or older "
	       "than 7.66";
	return ready ? &calls : NULL;
}
