#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# softcuda/libnccl/fetch where the archive cannot be reached, where Debian has moved on to a version that is not known, and
# where the folder cannot be written: one line that says what happened, and an older version is used where one can be had.
# Usage: test_fetch.sh PATH-OF-FETCH
set -uo pipefail
fetch=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HAWSER_DEBIAN_MIRROR=http://127.0.0.1:1/debian # nothing listens on port 1
failures=0

expect() { # name status pattern command...
	local name=$1 status=$2 pattern=$3 output rc
	shift 3
	output=$("$@" 2>&1)
	rc=$?
	if [ $rc != "$status" ] || ! grep -qE "$pattern" <<<"$output" || [ "$(wc -l <<<"$output")" -gt 1 ]; then
		echo "$name: exit status $rc (expected $status), printed: $output (expected one line like: $pattern)"
		failures=$((failures + 1))
	fi
}

keep() { # cache version: as if it had been fetched
	mkdir -p "$1/hawser/nccl/$2"
	echo x >"$1/hawser/nccl/$2/nccl.o"
	echo x >"$1/hawser/nccl/$2/nccl.h"
}

export XDG_CACHE_HOME=$folder/empty
expect unknown 1 'NCCL 9\.9\.9 is not known; known are: [0-9. ]+' "$fetch" 9.9.9
expect unreachable 1 'cannot be fetched: .*127\.0\.0\.1' "$fetch"
expect unreachable_all 1 'cannot be fetched: .*127\.0\.0\.1' "$fetch" all

export XDG_CACHE_HOME=$folder/older
keep "$XDG_CACHE_HOME" 2.22.3
expect older_is_used 0 'using NCCL 2\.22\.3, which was fetched before; 2\.29\.7 cannot be fetched' "$fetch"
expect kept_needs_no_archive 0 '^$' "$fetch" 2.22.3

# Debian has moved on: the lists come, and hold a version without a layout and the older one that has one.
mkdir -p "$folder/bin"
cat >"$folder/bin/apt-get" <<'TXT'
#!/bin/sh
exit 0
TXT
cat >"$folder/bin/apt-cache" <<'TXT'
#!/bin/sh
echo 'libnccl-dev | 2.99.1-1-1 | mirror sid/contrib amd64 Packages'
echo 'libnccl-dev | 2.22.3-1-1 | mirror trixie/contrib amd64 Packages'
TXT
chmod +x "$folder/bin/apt-get" "$folder/bin/apt-cache"
expect moved_on 0 'Debian no longer offers NCCL 2\.29\.7; using 2\.22\.3' env PATH="$folder/bin:$PATH" "$fetch"
expect moved_on_exact 1 'NCCL 2\.29\.7 cannot be fetched: .* offers 2\.99\.1-1-1 and 2\.22\.3-1-1' env PATH="$folder/bin:$PATH" "$fetch" 2.29.7

touch "$folder/file"
export XDG_CACHE_HOME=$folder/file
expect unwritable 1 'cannot make the folder .*set XDG_CACHE_HOME' "$fetch"

[ $failures = 0 ] || exit 1
