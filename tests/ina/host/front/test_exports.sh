#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_exports.sh LIBRARY HEADER: the library exports what the header declares and nothing else, and needs only libc and libm
set -eu
exported=$(nm -D --defined-only "$1" | awk '$2 ~ /[TDBRVW]/ { print $3 }' | sort)
declared=$(grep -oE '\bha_ina_[a-z_]+\(' "$2" | grep -v '^ha_ina_[a-z_]*()' | tr -d '(' | sort -u)
diff <(echo "$declared") <(echo "$exported") || { echo "declared (<) and exported (>) differ"; exit 1; }
needed=$(readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|ld-linux|libasan|libubsan|libtsan|libgcc_s|libpthread|libdl|libgcov)' || true)
[ -z "$needed" ] || { echo "needs $needed"; exit 1; }
