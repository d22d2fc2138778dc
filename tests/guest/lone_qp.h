// SPDX-License-Identifier: GPL-2.0-or-later
/* QPs of every type that need no other side: to be led through their states. */
#pragma once

#include "endpoint.h"

namespace tern::guest {

using SrqPtr = std::unique_ptr<ibv_srq, Releaser<ibv_destroy_srq>>;
/* ibv_close_xrcd() is one of those functions that each file has of its own. */
struct XrcdCloser {
	void operator()(ibv_xrcd *xrcd) const;
};
using XrcdPtr = std::unique_ptr<ibv_xrcd, XrcdCloser>;
using AhPtr = std::unique_ptr<ibv_ah, Releaser<ibv_destroy_ah>>;

CqPtr make_cq(const Device &device, int cqe);
XrcdPtr make_xrcd(const Device &device);
SrqPtr make_srq(const Device &device, uint32_t max_wr);
/** An address handle to the device itself. */
AhPtr make_ah_to_self(const Device &device);

const char *name_of(ibv_qp_type type);
const char *name_of(ibv_qp_state state);

/** The attributes that a QP of @type must and may be given when it goes @from one state @to
 * another (11.2.5.2). */
struct Transition {
	bool legal = false;
	int required = 0;
	int optional = 0;
};
Transition transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to);

/** A QP with a CQ of its own, whose peer is itself until it is aimed at another. */
class LoneQp {
public:
	LoneQp(const Device &device, ibv_qp_type type, int cqe = 32)
	        : LoneQp(device, type, make_cq(device, cqe))
	{
	}
	LoneQp(const Device &device, ibv_qp_type type, CqPtr cq);

	ibv_qp *get() const { return qp_.get(); }
	ibv_cq *cq() const { return cq_.get(); }

	ibv_xrcd *xrcd() const { return xrcd_.get(); } /* of an XRC_RECV */

	/** Takes for its peer the QP that the other side aims at us now. */
	void aim_at(Peer &peer);
	/** Values that are valid for every attribute. */
	ibv_qp_attr attributes() const;
	/** What ibv_modify_qp() answers. */
	int modify(ibv_qp_attr &attr, int mask) const;
	int go(ibv_qp_state to, int mask) const;

	ibv_qp_attr query() const;
	ibv_qp_state state() const { return query().qp_state; }

	/** Leads it to @state, from RESET on. */
	void lead_to(ibv_qp_state state) const;

	/** One SEND of @sge, which completes; datagrams go to @ah. */
	int post_send(uint64_t wr_id, ibv_sge sge, ibv_ah *ah = nullptr) const;
	int post_recv(uint64_t wr_id, ibv_sge sge) const;
	ibv_wc completion() const;
	bool silent() const;

private:
	void step(ibv_qp_state to) const;

	const Device &device_;
	ibv_qp_type type_;
	CqPtr cq_;
	XrcdPtr xrcd_;
	QpPtr qp_;
	uint32_t peer_qpn_;
	ibv_gid peer_gid_;
};

} // namespace tern::guest
