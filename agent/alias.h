/* SPDX-License-Identifier: BSD-3-Clause */
/* alias.h - a link to the agent's directory at the path that MPIB's document names, for programs
 * that look only there */
#ifndef HA_AGENT_ALIAS_H
#define HA_AGENT_ALIAS_H

/*
 * `path` is a symbolic link of ours to `folder`, made when nothing is there. 0, -EEXIST when
 * something else is there (whoever made it keeps it), or what the system says.
 */
int ha_alias_ensure(const char *path, const char *folder);

#endif
