#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every type with every reduction, generated data and a file's.
. "$(dirname "$0")/lib.sh"

clean 50 allreduce --ranks 3 -d all -o all -b 8K -e 8K -n 1
clean 50 reducescatter --ranks 4 -d all -o all -b 16K -e 16K -n 1
clean 10 allgather --ranks 2 -d all -b 8K -e 8K -n 1
# a program's bytes have every kind of float, infinities and NaN among them
clean 10 alltoall --ranks 3 -d all -b 100K -e 100K -n 1 --input "$HA"
clean 50 allreduce --ranks 3 -d all -o all -b 100K -e 100K -n 1 --input "$HA"
python3 -c "
import random, struct, sys
random.seed(7)
sys.stdout.buffer.write(b''.join(struct.pack('<f', random.gauss(0, 1)) for _ in range(10007)))" >"$TMP/normal"
clean 5 allreduce --ranks 4 -o all -b 128K -e 128K -n 1 --input "$TMP/normal"
# and with such data a flipped low bit of an exponent is still seen
TESTSOCK_FAULT=stale:5 perf allreduce --ranks 4 -b 128K -e 128K -n 1 -w 0 --check-all --protocol simple --input "$TMP/normal"
[ $STATUS -eq 1 ] || fail "stale bytes of a file's data were not noticed"
# tensors: only what follows the header is data; the header read as floats would be seen in the sums
python3 - "$TMP" <<'PY'
import json, random, struct, sys
random.seed(8)
data = b"".join(struct.pack("<f", random.gauss(0, 1)) for _ in range(1000))
text = json.dumps({"descr": "<f4", "fortran_order": False, "shape": (1000,)}).ljust(117) + "\n"
open(sys.argv[1] + "/x.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data)
text = json.dumps({"x": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}}) + " "
open(sys.argv[1] + "/x.safetensors", "wb").write(struct.pack("<Q", len(text)) + text.encode() + data)
PY
for file in x.npy x.safetensors normal; do
	clean 1 allreduce --ranks 3 -b 64K -e 64K -n 1 --input "$TMP/$file"
done
finish
