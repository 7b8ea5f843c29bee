#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Puts the plugin and its tools from the image onto the node, or takes away what it has put there.
# Usage: install.sh FROM TO (/opt/hawser /host/opt/hawser)
#        install.sh --remove TO
# Jobs may run from TO meanwhile: each file is replaced by rename, so that they keep the one they have opened. The names of what was
# installed are in TO/.installed: an upgrade takes away what the new version no longer has.
set -eu

usage() { echo "usage: install.sh FROM TO | --remove TO" >&2; exit 2; }
[ $# = 2 ] || usage

# What the file of names lists, and the folders below FOLDER that are empty then.
remove_listed() { # FOLDER LIST
	while read -r file; do
		rm -f "$1/$file"
	done <"$2"
	find "$1" -mindepth 1 -depth -type d -empty -delete
}

if [ "$1" = --remove ]; then
	to=$2
	if [ ! -e "$to/.installed" ]; then # removed before, by a pod that was started again
		echo "hawser is not in $to: no .installed there, nothing to remove"
		exit
	fi
	remove_listed "$to" "$to/.installed"
	# The list goes last: a removal that is ended before can be repeated.
	rm "$to/.installed"
	rmdir "$to" 2>/dev/null || true # what another has put there stays
	echo "hawser is no longer in $to"
	exit
fi

from=$1 to=$2
case $from in -*) usage ;; esac
cd "$from"
mkdir -p "$to"
work=$(mktemp -d)
find . ! -type d | sort >"$work/new"
touch "$work/old"
[ ! -e "$to/.installed" ] || sort "$to/.installed" >"$work/old"
# Until all is there, what either version has is what a removal would have to take away.
sort -u "$work/old" "$work/new" >"$to/.installed.new"
mv "$to/.installed.new" "$to/.installed"
find . -type d | while read -r folder; do
	mkdir -p "$to/$folder"
done
while read -r file; do
	if cmp -s "$file" "$to/$file" 2>/dev/null && [ ! -L "$file" ]; then
		continue
	fi
	cp -a "$file" "$to/$file.new.$$"
	mv -f "$to/$file.new.$$" "$to/$file"
done <"$work/new"
comm -13 "$work/new" "$work/old" >"$work/gone"
remove_listed "$to" "$work/gone"
cp "$work/new" "$to/.installed.new"
mv "$to/.installed.new" "$to/.installed"
rm -r "$work"
echo "hawser is in $to"
