// SPDX-License-Identifier: GPL-2.0-or-later
//
// LD_PRELOAD=ack_timeout.so gives the QPs of a stock program an ACK timeout of 18. The pingpongs of
// rdma-core have 14, and no option for it: their QPs fail when the peer does not answer for 2 s,
// which happens on a busy machine.
#include <cerrno>

#include <dlfcn.h>
#include <infiniband/verbs.h>

namespace {

constexpr uint8_t kTimeout = 18;

using ModifyQp = int (*)(ibv_qp *, ibv_qp_attr *, int);

/* libibverbs also has a function of this name for programs of its first ABI, whose structs differ.
 * dlsym() may find either. */
ModifyQp original()
{
	return reinterpret_cast<ModifyQp>(dlvsym(RTLD_NEXT, "ibv_modify_qp", "IBVERBS_1.1"));
}

} // namespace

extern "C" int ibv_modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int mask)
{
	const ModifyQp modify_qp = original();
	if (!modify_qp)
		return ENOSYS;
	ibv_qp_attr patient = *attr;
	if (mask & IBV_QP_TIMEOUT)
		patient.timeout = kTimeout;
	return modify_qp(qp, &patient, mask);
}
