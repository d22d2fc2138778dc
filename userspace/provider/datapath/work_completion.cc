// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "datapath/work_completion.h"

#include <bit>
#include <mutex>

#include "terndv.h"

namespace tern::provider {

using namespace tern::hw;

ibv_wc_opcode wc_opcode(const Completion &c)
{
	switch (c.opcode) {
	case TERN_OP_WRITE:
	case TERN_OP_WRITE_IMM:
		return IBV_WC_RDMA_WRITE;
	case TERN_OP_READ:
		return IBV_WC_RDMA_READ;
	case TERN_OP_CMP_SWAP:
		return IBV_WC_COMP_SWAP;
	case TERN_OP_FETCH_ADD:
		return IBV_WC_FETCH_ADD;
	case TERN_OP_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	case TERN_OP_FLUSH:
		return static_cast<ibv_wc_opcode>(TERNDV_WC_FLUSH);
	case TERN_OP_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case TERN_OP_BIND_MW:
		return IBV_WC_BIND_MW;
	case TERN_CQE_RECV:
		return IBV_WC_RECV;
	case TERN_CQE_RECV_WRITE_IMM:
		return IBV_WC_RECV_RDMA_WITH_IMM;
	case TERN_CQE_TAG_ADD:
		return IBV_WC_TM_ADD;
	case TERN_CQE_TAG_DEL:
		return IBV_WC_TM_DEL;
	case TERN_CQE_TAG_SYNC:
		return IBV_WC_TM_SYNC;
	case TERN_CQE_TAG_RECV:
	case TERN_CQE_TAG_UNEXPECTED:
		return IBV_WC_TM_RECV;
	case TERN_CQE_NO_TAG:
		return IBV_WC_TM_NO_TAG;
	default:
		return IBV_WC_SEND;
	}
}

unsigned wc_flags(const Completion &c)
{
	unsigned wc = 0;

	if (c.flags & TERN_CQE_IMM)
		wc |= IBV_WC_WITH_IMM;
	if (c.flags & TERN_CQE_INV)
		wc |= IBV_WC_WITH_INV;
	if (c.flags & TERN_CQE_GRH)
		wc |= IBV_WC_GRH;
	if (c.flags & TERN_CQE_TAG_MATCH)
		wc |= IBV_WC_TM_MATCH;
	if (c.flags & TERN_CQE_TAG_DATA)
		wc |= IBV_WC_TM_DATA_VALID;
	if (c.flags & TERN_CQE_TAG_SYNC_REQ)
		wc |= IBV_WC_TM_SYNC_REQ;
	return wc;
}

uint32_t wc_imm_data(const Completion &c)
{
	return c.flags & TERN_CQE_INV ? c.imm.get() : std::bit_cast<uint32_t>(c.imm);
}

namespace {

void fill_wc(const Completion &c, ibv_wc &wc)
{
	wc.wr_id = c.wr_id;
	wc.status = static_cast<ibv_wc_status>(c.status);
	wc.opcode = wc_opcode(c);
	wc.vendor_err = 0;
	wc.byte_len = c.byte_len;
	wc.imm_data = wc_imm_data(c);
	wc.qp_num = c.qpn;
	wc.src_qp = c.src_qpn;
	wc.wc_flags = wc_flags(c);
	wc.pkey_index = 0;
	wc.slid = 0;
	wc.sl = c.sl;
	wc.dlid_path_bits = 0;
}

} // namespace

int poll_list(CompletionQueue &cq, int count, ibv_wc *wc)
{
	const std::lock_guard guard(cq.lock());
	Completion completion;
	int n = 0;

	while (n < count && cq.next(completion))
		fill_wc(completion, wc[n++]);
	cq.release();
	return n || !cq.closed() ? n : -1;
}

} // namespace tern::provider
