/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rule_file.h"

#include "agent/daemon.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Before the first one of ours takes its place. */
static int keep_unread(struct ha_daemon *d)
{
	int err = ha_folder_rename(&d->folder, HA_AGENT_RULES, HA_AGENT_RULES_BAD);

	if (err && err != -ENOENT)
		return err;
	d->rules_unread = false;
	if (!err)
		HA_WARN("agent",
			"%s/%s, which could not be read, is called %s now: correct it and set its "
			"rules again (ha agent set)",
			d->folder.path, HA_AGENT_RULES, HA_AGENT_RULES_BAD);
	return 0;
}

int ha_rule_file_save(struct ha_daemon *d)
{
	char *text = NULL;
	size_t len = 0;
	int err = d->rules_unread ? keep_unread(d) : 0;
	FILE *out;

	if (err)
		return err;
	out = open_memstream(&text, &len);
	if (!out)
		return -ENOMEM;
	fputs("# Written by ha-agent; change it with `ha agent set` and `ha agent unset`.\n", out);
	ha_rules_print(&d->advisor.manual, out);
	err = fclose(out) ? -ENOMEM : ha_folder_write(&d->folder, HA_AGENT_RULES, 0644, text, len);
	free(text);
	return err;
}

const char *ha_rule_file_change(struct ha_daemon *d, const struct ha_rule *rule, bool set)
{
	int err = 0;

	if (set)
		err = ha_rules_set(&d->advisor.manual, rule);
	else if (!ha_rules_unset(&d->advisor.manual, rule))
		return "there is no such rule";
	if (err)
		return err == -ENOSPC ? "there are too many rules" : strerror(-err);
	ha_advisor_rules_changed(&d->advisor);
	err = ha_rule_file_save(d);
	if (err)
		HA_WARN("agent",
			"the rules cannot be kept in %s/%s: %s; they are in force until the agent "
			"ends",
			d->folder.path, HA_AGENT_RULES, strerror(-err));
	return NULL;
}

void ha_rule_file_load(struct ha_daemon *d)
{
	char path[300], why[128];

	snprintf(path, sizeof(path), "%s/%s", d->folder.path, HA_AGENT_RULES);
	if (!ha_folder_inode(&d->folder, HA_AGENT_RULES))
		return;
	d->rules_unread = ha_rules_load(&d->advisor.manual, path, why, sizeof(why)) != 0;
	if (d->rules_unread)
		HA_WARN("agent", "%s: %s; no rule by hand is in force", path, why);
	else
		HA_INFO("agent", "%s: %zu rules by hand", path, d->advisor.manual.n);
}
