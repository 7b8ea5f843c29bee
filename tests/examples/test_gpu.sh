#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# examples/gpu against what `cmake --install` has put into a prefix, and nothing of the checkout: compiled by pkg-config and by CMake,
# run over software NICs of which one dies half-way. With NVCC: compiled by it, which is all that a machine without a GPU can show.
# Usage: test_gpu.sh BUILD_DIR [NVCC]
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
fail() { echo "$1" >&2; exit 1; }

cmake --install "$1" --prefix "$prefix" >/dev/null
cp -r "$prefix/share/hawser/examples/gpu" "$prefix/mine"
cd "$prefix/mine"
flags=$(PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig pkg-config --cflags --libs hawser-gpu)

by_cmake() { # OPTION...
	{ cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" "$@" && cmake --build build; } >log 2>&1 || fail "CMake: $(cat log)"
}

# Both ranks have all rounds, each word is right, and rank 0 went on over its other NIC.
check_run() { # PROGRAM
	local out
	out=$(env -u HA_GPU_ENABLE_BACKUP "$1" 2>&1) || fail "$1 failed: $out"
	for rank in 0 1; do
		grep -qxE "rank $rank: ([0-9]+) rounds of \1, 0 wrong words, [1-9][0-9]* changes of path: done" <<<"$out" ||
			fail "$1, rank $rank: $out"
	done
}

# Without a second path the same death ends both ranks' kernels, and they say so: the check above can fail.
check_without_backup() { # PROGRAM
	local out
	if out=$(HA_GPU_ENABLE_BACKUP=0 HA_GPU_NO_PATH_MS=200 "$1" 2>&1); then
		fail "$1 finished over a dead NIC without a backup: $out"
	fi
	grep -qE "^rank 0: [0-9]+ rounds of [0-9]+, 0 wrong words, 0 changes of path: FAILED$" <<<"$out" || fail "$1 without a backup: $out"
}

if [ $# = 1 ]; then
	# shellcheck disable=SC2086
	${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -Werror put_signal.c $flags -o put_signal
	check_run ./put_signal
	check_without_backup ./put_signal
	by_cmake
	check_run build/put_signal
	exit 0
fi

nvcc=$2
for arch in 80 90 100; do
	# shellcheck disable=SC2086
	"$nvcc" -x cu -arch=sm_$arch -Werror all-warnings put_signal.c $flags -o put_signal
done
by_cmake -DWITH_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc"
for program in ./put_signal build/put_signal; do
	if out=$(CUDA_VISIBLE_DEVICES='' $program 2>&1); then
		fail "$program ran without a GPU: $out"
	fi
	grep -q '^no GPU: ' <<<"$out" || fail "$program without a GPU: $out"
done
