/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libcurl.h - libcurl at run time
 *
 * The exporter may read every user's pages and environment. Without a webhook or Kubernetes there
 * is no HTTP client in it, and it runs where libcurl is not installed.
 */
#ifndef HAWSER_EXPORTER_LIBCURL_H
#define HAWSER_EXPORTER_LIBCURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#define LIBCURL_CALLS(X)  \
	X(global_init)    \
	X(easy_init)      \
	X(easy_setopt)    \
	X(easy_getinfo)   \
	X(easy_perform)   \
	X(easy_strerror)  \
	X(easy_cleanup)   \
	X(slist_append)   \
	X(slist_free_all) \
	X(url)            \
	X(url_set)        \
	X(url_get)        \
	X(url_cleanup)    \
	X(free)

#define LIBCURL_MEMBER(name) __typeof__(curl_##name) *name;

/* curl_easy_init() is easy_init(), and so on. */
struct libcurl {
	LIBCURL_CALLS(LIBCURL_MEMBER)
};

/* NULL: it is not there; *why then says what is missing. Stays open; for one thread, before the
 * others. */
const struct libcurl *libcurl_open(const char **why);

#endif
