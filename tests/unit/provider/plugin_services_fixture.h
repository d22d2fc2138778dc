/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "plugin_fixture.h"

namespace tern::provider::test {

/** QPs of any service, with what they need: handles of addresses, SRQs. */
class PluginServices : public PluginQp {
protected:
	~PluginServices() override
	{
		if (ah_) {
			EXPECT_EQ(ibv_destroy_ah(ah_), 0);
		}
	}

	ibv_qp *create(ibv_qp_type type, ibv_srq *srq = nullptr)
	{
		ibv_qp_init_attr attr = init_attr();
		attr.qp_type = type;
		attr.srq = srq;
		return ready(ibv_create_qp(pd_, &attr));
	}

	ibv_qp *create_ex(ibv_qp_type type, uint64_t ops, ibv_xrcd *xrcd = nullptr,
	                  uint32_t create_flags = 0)
	{
		const ibv_qp_init_attr attr = init_attr();
		ibv_qp_init_attr_ex ex = {};
		ex.qp_type = type;
		ex.cap = attr.cap;
		if (xrcd) {
			ex.comp_mask = IBV_QP_INIT_ATTR_XRCD;
			ex.xrcd = xrcd;
		} else {
			ex.comp_mask = IBV_QP_INIT_ATTR_PD;
			ex.pd = pd_;
			ex.send_cq = send_cq_;
			ex.recv_cq = type == IBV_QPT_XRC_SEND ? nullptr : recv_cq_;
		}
		if (ops) {
			ex.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
			ex.send_ops_flags = ops;
		}
		if (create_flags) {
			ex.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
			ex.create_flags = create_flags;
		}
		return ready(ibv_create_qp_ex(context_, &ex));
	}

	static ibv_ah_attr ah_attr()
	{
		ibv_ah_attr attr = {};
		attr.is_global = 1;
		attr.grh.dgid.raw[15] = 0x77;
		attr.grh.sgid_index = 3;
		attr.grh.hop_limit = 9;
		attr.grh.flow_label = 0xf0012345; /* 20 bits of it are a flow label */
		attr.grh.traffic_class = 0x20;
		attr.sl = 4;
		attr.port_num = 1;
		return attr;
	}

	void make_ah()
	{
		ibv_ah_attr attr = ah_attr();
		ah_ = ibv_create_ah(pd_, &attr);
		ASSERT_NE(ah_, nullptr);
	}

	template <class Segment>
	Segment at(const tern_create_qp_resp &qp, size_t block, size_t seg)
	{
		Segment s;
		std::memcpy(&s, fake_.memory(qp.buf_key) + block * 64 + seg * 16, sizeof(s));
		return s;
	}

	ibv_srq *create_srq(uint32_t max_wr)
	{
		ibv_srq_init_attr attr = {};
		attr.srq_context = this;
		attr.attr = {.max_wr = max_wr, .max_sge = 1, .srq_limit = 0};
		return ibv_create_srq(pd_, &attr);
	}

	int post_srq(ibv_srq *srq, uint64_t wr_id)
	{
		ibv_sge sge = {reinterpret_cast<uint64_t>(buffer_), 16, mr_->lkey};
		ibv_recv_wr wr = {}, *bad;
		wr.wr_id = wr_id;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		return ibv_post_srq_recv(srq, &wr, &bad);
	}

	/* The card completes, to CQE @n of @cq, the WQE that was posted to the last SRQ as @post.
	 */
	void complete_srq(const tern_create_cq_resp &cq, uint32_t n, uint32_t qpn, uint32_t post)
	{
		const tern_srq_buf &srq = fake_.last_srq;
		const uint32_t slot = fake_.at<uint32_t>(
		        srq.buf_key + srq.ring_offset)[post & ((1u << srq.log_size) - 1)];
		fake_.at<tern_hw_cqe>(cq.buf_key)[n].srqn = srq.srqn;
		complete(cq, n, qpn, TERN_CQE_RECV, slot);
	}

	ibv_ah *ah_ = nullptr;
};

} // namespace tern::provider::test
