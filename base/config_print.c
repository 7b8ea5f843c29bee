/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/config.h"

#include <string.h>

#include "base/config_entry.h"

static const struct {
	const char *title, *about;
} groups[HA_CONFIG_GROUPS] = {
	[HA_CONFIG_AVAILABILITY] = { "When a path fails", "" },
	[HA_CONFIG_PROGRESS] = { "Polling and threads", "" },
	[HA_CONFIG_QUEUE_PAIR] = { "Queue pairs", "" },
	[HA_CONFIG_BUDGET] = { "What maxComms is computed from",
			       "maxComms = min(max_qp / (2 x channels), max_cqe / ((wr x recvs + "
			       "wr) x 2 x channels), 256), "
			       "per device." },
	[HA_CONFIG_MEMORY] = { "Memory registration", "" },
	[HA_CONFIG_RAILS] = { "Several rails with weights", "" },
	[HA_CONFIG_DEVICES] = { "Devices and addresses", "The NCCL_ variables mean what they mean "
							 "to NCCL's own InfiniBand transport." },
	[HA_CONFIG_ONE_SIDED] = { "One-sided operations", "" },
	[HA_CONFIG_AGGREGATION] = { "Reduction in the network", "" },
	[HA_CONFIG_LOGGING] = { "Logging", "" },
	[HA_CONFIG_TESTING] = { "For tests", "" },
};

static const char *const sources[] = {
	[HA_CONFIG_DEFAULT] = "default",
	[HA_CONFIG_SET] = "environment",
	[HA_CONFIG_REJECTED] = "default (nonsense in the environment)",
	[HA_CONFIG_ADJUSTED] = "set by a rule",
};

const char *ha_config_name(enum ha_config_id id)
{
	return ha_config_entries[id].name;
}

bool ha_config_has_effect(enum ha_config_id id)
{
	return ha_config_entries[id].status == HA_CONFIG_NOW;
}

const char *ha_config_value(const struct ha_config *config, enum ha_config_id id, char *buf,
			    size_t len)
{
	const struct ha_config_entry *entry = &ha_config_entries[id];

	if (entry->type == HA_CONFIG_STR)
		snprintf(buf, len, "%s", (const char *)config + entry->offset);
	else
		ha_config_entry_text(entry, ha_config_entry_number(entry, config), buf, len);
	return buf;
}

void ha_config_print(const struct ha_config *config, FILE *out)
{
	char value[HA_CONFIG_TEXT_MAX];

	for (int g = 0; g < HA_CONFIG_GROUPS; g++) {
		fprintf(out, "%s%s\n", g ? "\n" : "", groups[g].title);
		for (int i = 0; i < HA_CONFIG_COUNT; i++) {
			const struct ha_config_entry *entry = &ha_config_entries[i];

			if ((int)entry->group != g)
				continue;
			ha_config_value(config, (enum ha_config_id)i, value, sizeof(value));
			fprintf(out, "  %-32s %-10s %s%s\n", entry->name, *value ? value : "-",
				sources[config->source[i]],
				entry->status == HA_CONFIG_LATER ? "; no effect in this version"
								 : "");
		}
	}
}

/* A table cell: '|' would end it. */
static void cell_print(const char *text, FILE *out)
{
	for (; *text; text++)
		if (*text == '|')
			fputs("\\|", out);
		else
			fputc(*text, out);
}

static void row_print(const struct ha_config_entry *entry, FILE *out)
{
	char text[HA_CONFIG_TEXT_MAX];

	ha_config_entry_text(entry, entry->def, text, sizeof(text));
	fprintf(out, "| `%s` | %s%s%s | ", entry->name, *text ? "`" : "", *text ? text : "–",
		*text ? "`" : "");
	if (entry->type == HA_CONFIG_STR)
		fputs("text", out);
	else
		cell_print(ha_config_entry_accepts(entry, text, sizeof(text)), out);
	fputs(" | ", out);
	cell_print(entry->help, out);
	fprintf(out, "%s |\n",
		entry->status == HA_CONFIG_LATER ? " *Read and checked; no effect in this version.*"
						 : "");
}

static void elsewhere_print(FILE *out)
{
	fputs("\n## Variables of the other programs\n\nEach of these is read by one program alone, "
	      "and not by the plugin.\n\n"
	      "| variable | default | read by | meaning |\n|---|---|---|---|\n",
	      out);
	for (int i = 0; i < ha_config_elsewhere_count; i++) {
		const struct ha_config_elsewhere *e = &ha_config_elsewhere[i];
		const char *tick = *e->def ? "`" : "";

		fprintf(out, "| `%s` | %s%s%s | %s | %s |\n", e->name, tick, *e->def ? e->def : "–",
			tick, e->reader, e->help);
	}
}

/* Every NCCL_IB_ and NCCL_NET_ variable of NCCL, once (scripts/compare-nccl-variables). */
static void nccl_print(FILE *out)
{
	fputs("\n## NCCL's own variables\n\nEvery `NCCL_IB_*` and `NCCL_NET_*` variable of NCCL up "
	      "to 2.30.7, and of its branch of development for 2.31 (2.31.0a7). One that is set "
	      "and not read is a warning, once, unless it "
	      "says what hawser does in any case; so is an `NCCL_IB_*` that is not here.\n\n| "
	      "variable | with hawser |\n|---|---|\n",
	      out);
	for (int i = 0; i < HA_CONFIG_COUNT; i++)
		if (!strncmp(ha_config_entries[i].name, "NCCL_IB_", 8))
			fprintf(out, "| `%s` | honoured, see above |\n", ha_config_entries[i].name);
	for (int i = 0; i < ha_config_ignored_count; i++)
		fprintf(out, "| `%s` | not read: %s%s%s%s |\n", ha_config_ignored[i].name,
			ha_config_ignored[i].why, ha_config_ignored[i].same ? " (as with " : "",
			ha_config_ignored[i].same ? ha_config_ignored[i].same : "",
			ha_config_ignored[i].same ? ")" : "");
	for (int i = 0; i < ha_config_core_count; i++)
		fprintf(out, "| `%s` | NCCL's core reads it: %s |\n", ha_config_core[i].name,
			ha_config_core[i].effect);
}

void ha_config_print_markdown(FILE *out)
{
	fputs("<!-- Generated by `ha config --markdown`; edit base/config_table.h instead. -->\n"
	      "# Configuration\n\n"
	      "hawser reads environment variables when NCCL initialises it; NCCL puts the lines of "
	      "`/etc/nccl.conf`\n"
	      "and `~/.nccl.conf` there too. `ha config` shows what is in force and where it comes "
	      "from. A value that\n"
	      "makes no sense or is out of range is one line in the log, and the default is used. "
	      "A misspelt\n"
	      "`HA_NCCL_`, `MPIB_` or `NETCCL_` name is one line too. An empty value counts as not "
	      "set.\n"
	      "Variables that ha-backend, libhawser-ina.so and netccl read by themselves have a "
	      "table of their own, below.\n",
	      out);
	for (int g = 0; g < HA_CONFIG_GROUPS; g++) {
		fprintf(out, "\n## %s\n\n", groups[g].title);
		if (*groups[g].about)
			fprintf(out, "%s\n\n", groups[g].about);
		fputs("| variable | default | accepted | meaning |\n|---|---|---|---|\n", out);
		for (int i = 0; i < HA_CONFIG_COUNT; i++)
			if ((int)ha_config_entries[i].group == g)
				row_print(&ha_config_entries[i], out);
	}
	elsewhere_print(out);
	nccl_print(out);
}
