#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The alert rules as Prometheus reads them, each shown to fire; the Grafana board: what Grafana needs is there, every expression is
# PromQL, and every metric is one that the exporter has. Argument: hawser-exporter.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
root=$(cd "$here/../../.." && pwd)
exporter=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
command -v promtool >/dev/null || { echo "skipped: no promtool (Debian package prometheus)"; exit 77; }

cp "$root/tools/exporter/alerts.yml" "$here/alerts_test.yml" "$tmp"
promtool check rules "$tmp/alerts.yml"
promtool test rules "$tmp/alerts_test.yml"

mkdir "$tmp/pages"
"$exporter" --dir "$tmp/pages" --once --textfile "$tmp/out.prom" --journal none
python3 - "$root/tools/exporter" "$tmp" <<'END'
import json, re, sys
source, tmp = sys.argv[1:]
board = json.load(open(source + "/grafana.json"))
known = set(re.findall(r"^# TYPE (\w+)", open(tmp + "/out.prom").read(), re.M))
assert board["title"] and board["uid"] and board["schemaVersion"] >= 36
names = [v["name"] for v in board["templating"]["list"]]
expressions, ids, taken = [], set(), set()
for panel in board["panels"]:
    assert panel["id"] not in ids and panel["title"] and panel["type"] in ("timeseries", "stat"), panel
    ids.add(panel["id"])
    place = panel["gridPos"]
    assert place["x"] >= 0 and place["w"] > 0 and place["x"] + place["w"] <= 24, place
    cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
    assert not cells & taken, "panels overlap: " + panel["title"]
    taken |= cells
    assert panel["datasource"]["uid"] == "${datasource}" and "datasource" in names
    for target in panel["targets"]:
        expressions.append(target["expr"])
expressions.append(re.search(r"label_values\((\w+),", board["templating"]["list"][1]["query"]["query"])[1])
rules = [open(source + "/alerts.yml").read()]
for expression in expressions + rules:
    for name in re.findall(r"\bhawser_\w+", expression):
        assert name in known, "%s is no metric of the exporter: %s" % (name, expression)
with open(tmp + "/board.yml", "w") as out:
    out.write("groups:\n- name: board\n  rules:\n")
    for i, e in enumerate(expressions):
        for variable, value in (("$__rate_interval", "1m"), ("$__range", "1h"), ("$instance", "n1")):
            e = e.replace(variable, value)
        assert "$" not in e, e
        out.write("  - record: board:%d\n    expr: %s\n" % (i, json.dumps(e)))
print("%d panels, %d expressions, %d metrics" % (len(board["panels"]), len(expressions), len(known)))
END
promtool check rules "$tmp/board.yml"
