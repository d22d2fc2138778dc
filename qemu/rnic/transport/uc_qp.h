/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cstdint>

#include "qemu/rnic/transport/connected_qp.h"
#include "qemu/rnic/transport/uc_requester.h"
#include "qemu/rnic/transport/uc_responder.h"

namespace tern {

/** An unreliable connected QP (IBA vol. 1, 9.8.2), made of a requester and a responder. */
class UcQp final : public ConnectedQp {
public:
	UcQp(DataPath &data, const QpConfig &config, SendQueue sq, RecvQueue rq);

	bool deliver(const Packet &packet) override;
	void query(hw::tern_hw_qp_attr &attr) const override;

private:
	friend class UcRequester;
	friend class UcResponder;

	bool send_data(unsigned &budget) override;
	void start_receiver() override { responder_.reset(Psn(attr_.rq_psn.get())); }
	void start_sender() override { requester_.reset(Psn(attr_.sq_psn.get())); }
	void stop() override;
	bool flush_requests(unsigned &) override
	{
		requester_.flush();
		return true;
	}
	bool sender_idle() const override { return requester_.idle(); }
	void resume_requester(bool ok) override { requester_.resume(ok); }

	UcRequester requester_;
	UcResponder responder_;
};

} // namespace tern
