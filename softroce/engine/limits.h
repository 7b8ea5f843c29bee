/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.h - how much of everything one NIC offers; reported by sr_nic_query_device() */
#ifndef SOFTROCE_ENGINE_LIMITS_H
#define SOFTROCE_ENGINE_LIMITS_H

#define SR_MAX_WR 32768
#define SR_MAX_CQE 4194304
#define SR_MAX_RD_ATOMIC 16        /* outstanding reads and atomics, either direction */
#define SR_MAX_MESSAGE 0x80000000u /* 2^31 bytes, IBTA vol. 1, 9.7.6 */
#define SR_MAX_CQ 65536
#define SR_MAX_PD 65536
#define SR_MAX_SRQ 65536
#define SR_MAX_AH 1048576 /* they take nothing here but their memory */

#endif
