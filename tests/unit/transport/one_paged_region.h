/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of regions whose pages come on demand share. */
#pragma once

#include "tests/support/one_card.h"

namespace tern::test {

using namespace hw;

constexpr uint32_t kMtu = 256;
constexpr uint32_t kPage = 4096;
constexpr uint32_t kPages = 4;
constexpr uint64_t kStart = 0x5000'0000'0000;
constexpr uint8_t kMinRnr = 1; /* of connection() */
constexpr uint8_t kRnr = kAethRnrNak | kMinRnr;
constexpr uint8_t kAccessNak = nak_syndrome(NakCode::RemoteAccessError);
constexpr uint8_t kOperationNak = nak_syndrome(NakCode::RemoteOperationalError);
constexpr uint32_t kQkey = 0x11223344;
constexpr size_t kGrh = 40;

inline std::vector<std::byte> bytes(size_t n, unsigned from = 1)
{
	std::vector<std::byte> data(n);
	for (size_t i = 0; i < n; i++)
		data[i] = static_cast<std::byte>(i * 3 + i / kMtu + from);
	return data;
}

class Paging : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		paged_.emplace(driver_.create_mr(pd_, kStart, kPages * kPage,
		                                 kAllAccess | TERN_ACCESS_MW_BIND, {4, 12, true}));
	}
	void connect(uint8_t type = TERN_QPT_RC)
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = type;
		qp_ = driver_.create_qp(options);
		if (type == TERN_QPT_UD)
			qp_->start(kQkey, kSqPsn);
		else
			qp_->connect(connection());
		events();
	}

	Sge at(uint64_t offset, uint32_t length) const { return paged_->sge(offset, length); }
	void bring(uint64_t leaf, bool write = true) { paged_->buffer.bring(leaf, write); }
	tern_hw_aq_status sync(uint32_t key) { return driver_.destroy(TERN_AQ_SYNC_MR, key); }
	tern_hw_faults faults()
	{
		auto c = make_command(TERN_AQ_QUERY_FAULT);
		c.object.id = qp_->number;
		const auto result = driver_.command(c);
		EXPECT_EQ(result.status, TERN_AQ_OK);
		return result.faults;
	}
	/** Answers the faults that the QP has now, as the driver does. */
	void resume(tern_hw_resume requester, tern_hw_resume responder)
	{
		faults();
		resume_only(requester, responder);
	}
	void resume_only(tern_hw_resume requester, tern_hw_resume responder)
	{
		auto c = make_command(TERN_AQ_RESUME_QP);
		c.resume_qp.qpn = qp_->number;
		c.resume_qp.requester = static_cast<uint8_t>(requester);
		c.resume_qp.responder = static_cast<uint8_t>(responder);
		EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
		run();
	}
	bool told() { return event(TERN_EVENT_PAGE_FAULT, qp_->number); }
	void expect_fault(const tern_hw_fault &fault, uint64_t offset, uint32_t length, bool write)
	{
		EXPECT_EQ(fault.addr.get(), kStart + offset);
		EXPECT_EQ(fault.length.get(), length);
		EXPECT_EQ(fault.key.get(), paged_->key);
		EXPECT_EQ(fault.write, write);
	}
	void expect_aeth(uint32_t psn, uint8_t syndrome)
	{
		const auto p = sent();
		ASSERT_TRUE(p);
		EXPECT_EQ(p->opcode, Opcode::RcAcknowledge);
		EXPECT_EQ(p->psn, psn_after(kRqPsn, psn));
		/* Credits are not what this is about. */
		const bool ack = (p->ext.aeth.syndrome & kAethKindMask) == kAethAck;
		EXPECT_EQ(ack ? uint8_t{kAethAck} : p->ext.aeth.syndrome, syndrome);
		EXPECT_FALSE(sent());
	}
	TestPacket request(Opcode opcode, uint32_t n, uint64_t offset, uint32_t length,
	                   std::vector<std::byte> payload = {}, Service service = Service::Rc) const
	{
		TestPacket p{.opcode = opcode,
		             .service = service,
		             .psn = psn_after(kRqPsn, n),
		             .ack_request = true,
		             .payload = std::move(payload)};
		p.ext.reth = {kStart + offset, paged_->key, length};
		return p;
	}
	TestPacket datagram(size_t size) const
	{
		TestPacket p{.opcode = Opcode::RcSendOnly,
		             .service = Service::Ud,
		             .payload = bytes(size)};
		p.ext.deth = {kQkey, kPeerQpn};
		return p;
	}
	void answer(Opcode opcode, uint32_t n, std::vector<std::byte> payload = {})
	{
		TestPacket p{.opcode = opcode, .psn = psn_after(kSqPsn, n), .payload = payload};
		p.ext.aeth = {kAethAck | 31, 1};
		p.ext.atomic_ack = 0x1122334455667788;
		give(p);
	}
	void post(uint8_t opcode, const Sge &sge)
	{
		SendRequest r{.opcode = opcode, .remote_addr = 0x1000, .rkey = 0x77, .sges = {sge}};
		if (qp_->options.type == TERN_QPT_UD) {
			r.to.emplace();
			std::ranges::copy(kPeerGid.bytes, r.to->dgid);
			std::ranges::copy(kPeerMac, r.to->dmac);
			r.to->dest_qpn = kPeerQpn;
			r.to->qkey = kQkey;
		}
		qp_->post_send(r);
		run();
	}
	/** The status of the only completion. */
	int completed()
	{
		const auto cqes = cq_->drain();
		return cqes.size() == 1 ? cqes[0].status : -1;
	}

	std::optional<HostMr> paged_;
};

} // namespace tern::test
