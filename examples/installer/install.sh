#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Puts the plugin and its tools from the image onto the node. Usage: install.sh FROM TO (/opt/hawser /host/opt/hawser)
# Jobs may run from TO meanwhile: each file is replaced by rename, so that they keep the one they have opened.
set -eu
from=$1 to=$2
cd "$from"
find . -type d | while read -r folder; do
	mkdir -p "$to/$folder"
done
find . ! -type d | while read -r file; do
	if cmp -s "$file" "$to/$file" 2>/dev/null && [ ! -L "$file" ]; then
		continue
	fi
	cp -a "$file" "$to/$file.new.$$"
	mv -f "$to/$file.new.$$" "$to/$file"
done
echo "hawser is in $to"
