/* SPDX-License-Identifier: BSD-3-Clause */
/* Which hawser the plugin is: `ha doctor` reads it without a call. */
#include "base/version.h"

__attribute__((visibility("default"))) extern const char *const hawser_plugin_version;
const char *const hawser_plugin_version = ha_version;
