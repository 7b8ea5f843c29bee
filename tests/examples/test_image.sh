#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The installer image: built from its Dockerfile by buildah, with a bare Debian 12 under the names that it starts from. Its command
# installs onto a folder that stands for the node; plugin, doctor and the DaemonSet's exporter work there, beside a job whose NIC fails;
# another image is an upgrade, --remove takes all away.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
skip() { echo "skipped: $1"; exit 77; }
fail() {
	echo "$1" >&2
	tail -20 "$work/out" >&2 2>/dev/null || true
	exit 1
}
[ "$(id -u)" = 0 ] || skip "not root: no container can be entered"
for program in buildah debootstrap; do
	command -v $program >/dev/null || skip "no $program: scripts/install-deps long"
done
base=$("$root/scripts/bare-root" --image --fetch 2>/dev/null) || skip "no bare Debian: scripts/bare-root --image --fetch makes one"
work=$(mktemp -d)
shm=$(mktemp -d /dev/shm/image-XXXXXX) # the node's /dev/shm, for what the containers share
pids=()
buildah() { command buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
cleanup() {
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	buildah rm --all >/dev/null 2>&1 || true
	rm -rf --one-file-system "$work" "$shm"
}
trap cleanup EXIT

# ---- the image ----

empty=$(buildah from scratch)
buildah add -q "$empty" "$base" / >"$work/out" 2>&1 || fail "the bare Debian is no image"
buildah commit -q "$empty" localhost/debian:bookworm >"$work/out" 2>&1 || fail "the bare Debian is no image"
buildah tag localhost/debian:bookworm localhost/debian:bookworm-slim
# What git has of this checkout, and what somebody has built in it for another place.
"$root/scripts/source-copy" "$work/source"
mkdir "$work/source/build"
echo 'CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere' >"$work/source/build/CMakeCache.txt"
buildah bud --isolation=chroot --pull-never -f "$work/source/examples/installer/Dockerfile" -t hawser-installer:one "$work/source" >"$work/out" 2>&1 ||
	fail "the image is not built"

# ---- onto a node ----

node=$work/node to=$work/node/opt/hawser
mkdir -p "$node/opt" "$node/state"
install() { # IMAGE CONTAINER: the image's own command, with what the DaemonSet mounts for it
	local words
	mapfile -t words < <(buildah inspect --type image "$1" |
		python3 -c 'import json, sys; print("\n".join(json.load(sys.stdin)["OCIv1"]["config"]["Cmd"]))')
	buildah run --isolation=chroot -v "$node/opt:/host/opt" "$2" -- "${words[@]}" >"$work/out" 2>&1 || fail "$1: '${words[*]}' does not install"
}
one=$(buildah from --pull-never localhost/hawser-installer:one)
install hawser-installer:one "$one"
files=(lib/libnccl-net-ha.so lib/librccl-net-ha.so lib/hawser/libnccl-net.so bin/ha bin/hawser-exporter etc/hawser/env.sh)
for file in "${files[@]}"; do
	[ -e "$to/$file" ] || fail "$file is not installed"
done
"$root/tests/plugin/nccl/glibc_floor.sh" "$to/lib/libnccl-net-ha.so"

# Any container of a job: nothing of the image is in it but the node's folder.
job=$(buildah from --pull-never localhost/debian:bookworm)
buildah run --isolation=chroot -v "$to:/opt/hawser:ro" "$job" -- ldd -r /opt/hawser/lib/libnccl-net-ha.so >"$work/out" 2>&1 || fail "ldd -r"
! grep -E 'not found|undefined' "$work/out" || fail "the plugin does not load in a bare Debian"

# As examples/kubernetes/job.yaml has it: the node's folder in place of the image's, the ConfigMap's environment.
mapfile -t environment < <(python3 -c '
import sys, yaml
for name, value in yaml.safe_load(open(sys.argv[1]))["data"].items():
    if name != "NCCL_SOCKET_IFNAME": # names an interface of the cluster
        print(name + "=" + value)' "$root/examples/kubernetes/env.yaml")
pod() { # COMMAND...
	buildah run --isolation=chroot -v "$to:/opt/hawser:ro" -v "$shm:/dev/shm" "$one" -- \
		env "${environment[@]}" HA_NCCL_VERBS=soft SOFTROCE_DEVICES=127.183.0.0/24,127.184.0.0/24 "$@"
}
pod sh -c 'ulimit -n 8192; exec ha doctor' >"$work/out" 2>&1 || fail "ha doctor"
grep -q '^0 errors' "$work/out" || fail "ha doctor"
pod ha doctor -v >"$work/out" 2>&1 || true
grep -q '/opt/hawser/lib/libnccl-net-ha.so' "$work/out" || fail "ha doctor has looked at another plugin"

# The DaemonSet's exporter, but for the port, which another may have, and the cluster.
mapfile -t exporter < <(python3 -c '
import sys, yaml
words = yaml.safe_load(open(sys.argv[1]))["spec"]["template"]["spec"]["containers"][0]["command"]
print("\n".join("--metrics=127.0.0.1:0" if w.startswith("--metrics=") else w for w in words if w != "--kubernetes"))' \
	"$root/examples/installer/daemonset.yaml")
# shellcheck disable=SC2016
buildah run --isolation=chroot -v "$shm:/dev/shm" -v "$node/state:/var/lib/hawser" "$one" -- \
	sh -c 'echo $$ >/var/lib/hawser/pid; exec "$@"' sh "${exporter[@]}" >"$work/exporter" 2>&1 &
pids+=($!)
serving() { sed -n 's/.*serves port \([0-9]*\).*/\1/p' "$work/exporter"; }
for _ in $(seq 1200); do
	[ -z "$(serving)" ] || break
	sleep 0.1
done
port=$(serving)
[ -n "$port" ] || fail "the exporter does not serve: $(cat "$work/exporter")"
get() { python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())' "http://127.0.0.1:$port$1"; }
pod ha perf sendrecv --ranks 2 -b 64K -e 64K --duration 6s --at 2s 'ha cut soft0' --at 4s 'ha heal soft0' >"$work/out" 2>&1 ||
	fail "ha perf from the node's folder"
grep -q 'plugin: HA, .*/opt/hawser/lib/libnccl-net-ha.so' "$work/out" || fail "ha perf has taken another plugin"
grep -q 'Out of bounds values : 0 OK' "$work/out" || fail "wrong elements"
get /metrics >"$work/metrics"
grep -q '^hawser_plugin_failovers_total{.*} [1-9]' "$work/metrics" || fail "the exporter has not counted the failover: $(cat "$work/metrics")"
get /still >"$work/page"
grep -q '<svg' "$work/page" || fail "the exporter serves no page"
kill "$(cat "$node/state/pid")"
wait "${pids[0]}" || fail "the exporter does not end in order: $(cat "$work/exporter")"
pids=()
[ -s "$node/state/exporter" ] || fail "the exporter has left no state on the node"

# ---- an upgrade, and the end ----

# The next version: a changed plugin, a new file, one less.
next=$(buildah from --pull-never localhost/hawser-installer:one)
buildah run --isolation=chroot "$next" -- sh -c 'cd /opt/hawser && echo >>lib/libnccl-net-ha.so && echo >share/hawser/new &&
	rm bin/softroce-run' >"$work/out" 2>&1 || fail "the next image"
buildah commit -q "$next" localhost/hawser-installer:two >"$work/out" 2>&1 || fail "the next image"
two=$(buildah from --pull-never localhost/hawser-installer:two)
unchanged=$(stat -c %i "$to/bin/ha") changed=$(stat -c %i "$to/lib/libnccl-net-ha.so")
install hawser-installer:two "$two"
[ "$(stat -c %i "$to/bin/ha")" = "$unchanged" ] || fail "an unchanged file was replaced"
[ "$(stat -c %i "$to/lib/libnccl-net-ha.so")" != "$changed" ] || fail "a changed file was written into"
[ -e "$to/share/hawser/new" ] || fail "a new file is not installed"
[ ! -e "$to/bin/softroce-run" ] || fail "what the new version does not have is still there"
pod ha perf pingpong --ranks 2 -b 8 -e 8 -n 20 >"$work/out" 2>&1 || fail "a job after the upgrade"

touch "$node/opt/another"
buildah run --isolation=chroot -v "$node/opt:/host/opt" "$two" -- hawser-install --remove /host/opt/hawser >"$work/out" 2>&1 || fail "--remove"
[ "$(ls -A "$node/opt")" = another ] || fail "a removal leaves $(find "$node/opt")"
echo "the image was built, has installed, was replaced by the next one, and has left nothing"
