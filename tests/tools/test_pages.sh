#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Manual pages and completions come from the programs' own tables: each page is roff without a warning, each option is in both.
# Arguments: ha, then the other programs that were built.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
ha=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() { echo "$1" >&2; exit 1; }

"$root/scripts/man-pages" "$tmp/man" "$@"
for page in "$tmp"/man/*; do
	[ -s "$page" ] || fail "$page is empty"
	if command -v groff >/dev/null; then
		warnings=$(groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null) || true
		[ -z "$warnings" ] || fail "$(basename "$page"): $warnings"
	fi
done
for command in $("$ha" --help=words | cut -f1 | grep -vE '^(help|version|ina)$'); do
	[ -e "$tmp/man/ha-$command.1" ] || fail "no page of ha $command"
	while IFS= read -r name; do
		grep -qF -- "${name//-/\\-}" "$tmp/man/ha-$command.1" || fail "ha $command: $name is not in its page"
	done < <("$ha" "$command" --help=words | cut -f1)
done

# complete WORDS...: what bash offers for the last one
complete() {
	PATH=$(dirname "$ha"):$PATH bash -c '
		source "$1"; shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_hawser
		printf "%s\n" "${COMPREPLY[@]}"' _ "$root/tools/completion/hawser.bash" "$@"
}
complete ha do | grep -qx doctor || fail "ha do: $(complete ha do)"
complete ha doctor --str | grep -qx -- --strict || fail "ha doctor --str"
[ "$(complete ha sim --no-such)" = "" ] || fail "an option that is not there"
[ "$(complete ha ina-perf --type fl)" = float32 ] || fail "no words of a choice: $(complete ha ina-perf --type fl)"
if command -v zsh >/dev/null; then
	zsh -n "$root/tools/completion/_hawser" || fail "_hawser is no zsh"
fi
