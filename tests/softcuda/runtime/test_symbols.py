#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_symbols.py LIBRARY: what libcudart.so.12 exports: CUDA's names only, under the version that programs ask for."""

import subprocess
import sys

NODE = "libcudart.so.12"
# Undefined in NCCL's objects (2.22.3 and 2.29.7), besides what every CUDA program needs.
NCCL = """__cudaInitModule __cudaPopCallConfiguration __cudaRegisterFatBinary __cudaRegisterFatBinaryEnd
__cudaRegisterFunction __cudaRegisterVar __cudaUnregisterFatBinary __cudaPushCallConfiguration cudaDeviceCanAccessPeer
cudaDeviceEnablePeerAccess cudaDeviceGetAttribute cudaDeviceGetByPCIBusId cudaDeviceGetPCIBusId cudaDeviceSetLimit
cudaDeviceSynchronize cudaDriverGetVersion cudaEventCreate cudaEventCreateWithFlags cudaEventDestroy cudaEventQuery
cudaEventRecord cudaEventSynchronize cudaFree cudaFreeAsync cudaFreeHost cudaFuncGetAttributes cudaFuncSetAttribute
cudaGetDevice cudaGetDeviceCount cudaGetDeviceProperties_v2 cudaGetErrorString cudaGetFuncBySymbol cudaGetLastError
cudaGraphAddDependencies cudaGraphAddDependencies_v2 cudaGraphAddEventRecordNode cudaGraphAddEventWaitNode
cudaGraphAddHostNode cudaGraphAddKernelNode cudaHostAlloc cudaHostGetDevicePointer cudaHostRegister
cudaHostUnregister cudaIpcCloseMemHandle cudaIpcGetMemHandle cudaIpcOpenMemHandle cudaLaunchHostFunc cudaLaunchKernel
cudaMalloc cudaMallocFromPoolAsync cudaMemPoolCreate cudaMemPoolDestroy cudaMemPoolSetAttribute cudaMemcpy
cudaMemcpyAsync cudaMemset cudaMemsetAsync cudaPointerGetAttributes cudaRuntimeGetVersion cudaSetDevice
cudaStreamCreate cudaStreamCreateWithFlags cudaStreamDestroy cudaStreamGetCaptureInfo_v3 cudaStreamGetId
cudaStreamIsCapturing cudaStreamSynchronize cudaStreamUpdateCaptureDependencies_v2 cudaStreamWaitEvent
cudaThreadExchangeStreamCaptureMode softcuda_GetDriverEntryPoint softcuda_StreamGetCaptureInfo_v2
softcuda_StreamUpdateCaptureDependencies softcuda_UserObjectCreate softcuda_GraphRetainUserObject""".split()


def main():
    lines = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], check=True, capture_output=True, text=True)
    symbols = [line.split()[-1] for line in lines.stdout.splitlines()]
    bare = [name for name in symbols if name != NODE and not name.endswith("@@" + NODE)]
    names = {name.split("@")[0] for name in symbols}
    foreign = [name for name in names if not name.startswith(("cuda", "__cuda", "softcuda_", NODE))]
    missing = [name for name in NCCL if name not in names]
    dynamic = subprocess.run(["readelf", "-d", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    for what, found in (("without the version", bare), ("not CUDA's", foreign), ("missing", missing)):
        if found:
            sys.exit(f"test_symbols: {what}: {' '.join(sorted(found)[:20])}")
    if f"[{NODE}]" not in dynamic:
        sys.exit(f"test_symbols: the library's name is not {NODE}")
    print(f"{len(names)} symbols")


main()
