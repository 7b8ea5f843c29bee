#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_doorbell_store.sh NVCC SOURCE: the store to a doorbell register is one that is never combined with others (PTX 8.2)
set -eu
nvcc=$1 source=$2

ptx=$("$nvcc" -std=c++17 -arch=sm_80 "-I$source" -ptx -o - "$source/tests/gpu/compile.cu")
version=$(sed -n 's/^\.version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' <<<"$ptx")
read -r major minor <<<"$version"
if ((major < 8 || (major == 8 && minor < 2))); then
	echo "this nvcc's PTX is $major.$minor: the store is a plain one"
	exit 77
fi
grep -m 1 'st\.mmio\.relaxed\.sys\.global\.u64' <<<"$ptx" || {
	echo "no st.mmio in what nvcc makes"
	exit 1
}
