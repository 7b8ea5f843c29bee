/* SPDX-License-Identifier: BSD-3-Clause */
/* version.h - which hawser this is (library ha_version: only what shows it is linked again after a
 * commit) */
#ifndef HA_BASE_VERSION_H
#define HA_BASE_VERSION_H

/* "0.1.0 (g1234abc)": the release and the commit it was built from, with a + when files had been
 * changed since; "0.1.0" where there is no git. */
extern const char ha_version[];

#endif
