#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The plugin as a file: it exports its tables and version and nothing else, needs no library that a node may lack, and has no
# system call instruction of its own. Usage: test_object.sh PLUGIN [sanitized]
set -u
plugin=$1
bad=0

want=$(for v in 6 7 8 9 10 11 12; do echo "ncclNetPlugin_v$v"; echo "ncclCollNetPlugin_v$v"; done
	for v in 11 12 13; do echo "ncclGinPlugin_v$v"; done
	for v in 13 14 15 16 17; do echo "ncclRmaPlugin_v$v"; done
	echo hawser_plugin_version)
want=$(echo "$want" | sort)
got=$(nm -D --defined-only "$plugin" | awk '{print $3}' | sed 's/@.*//' | sort)
if [ "$want" != "$got" ]; then
	echo "exports: want" $want "; got" $got
	bad=1
fi

# Sanitizers bring their runtimes; CUDA and libibverbs must never be linked, they are opened when they are there.
for lib in $(readelf -d "$plugin" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
	case $lib in
	libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | ld-linux* | libgcc_s.so.*) ;;
	libasan.so.* | libubsan.so.* | libtsan.so.* | libclang_rt*) ;;
	*) echo "needs $lib"; bad=1 ;;
	esac
done

if objdump -d --no-show-raw-insn "$plugin" |
	grep -E '^ *[0-9a-f]+:[[:space:]]+(syscall|sysenter|svc|int +\$0x80)' | head -3 | grep .; then
	echo "a system call instruction in $plugin"
	bad=1
fi
exit $bad
