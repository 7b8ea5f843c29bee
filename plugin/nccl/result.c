/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/nccl/result.h"

#include <errno.h>

/*
 * What NCCL tells its user for each: SystemError "a call to an external library failed",
 * InternalError "a bug in NCCL", InvalidUsage "wrong use, often a mismatch between ranks",
 * RemoteError "a network error or a peer that went away".
 */
ncclResult_t ha_result_failure(int err)
{
	switch (-err) {
	case EINVAL:
	case EBADF:
	case EFAULT:
	case ERANGE:
	case EMSGSIZE:
		return ncclInvalidArgument;
	/* a handle or message that is not ours: the ranks do not run the same plugin */
	case EPROTO:
	case EBADMSG:
	case EPROTONOSUPPORT:
	case EPERM: /* makeVDevice where MPIB fuses */
		return ncclInvalidUsage;
	case EPIPE:
	case EIO:
	case EREMOTEIO:
	case ETIMEDOUT:
	case ECONNRESET:
	case ECONNABORTED:
	case ECONNREFUSED:
	case ENOTCONN:
	case ESHUTDOWN:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EHOSTDOWN:
	case ENETDOWN:
	case ENETRESET:
		return ncclRemoteError;
	default:
		return ncclSystemError;
	}
}
