// SPDX-License-Identifier: GPL-2.0-or-later
/* Regions whose pages come on demand: who waits for them, what the host is told, and how each side
 * goes on or fails. */
#include "tests/unit/transport/one_paged_region.h"

namespace tern::test {
namespace {

/* ---- commands ---- */

TEST_F(Paging, Commands)
{
	connect();
	EXPECT_EQ(sync(paged_->key), TERN_AQ_OK);
	EXPECT_EQ(sync(paged_->key ^ 1), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(sync(mr_->key), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(faults().requester.length.get(), 0u);
	auto c = make_command(TERN_AQ_RESUME_QP);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_OBJECT);
	c.resume_qp.qpn = qp_->number;
	c.resume_qp.requester = 3;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c = make_command(TERN_AQ_QUERY_FAULT);
	c.object.id = 0x999u;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_OBJECT);
}

TEST_F(Paging, AWholeAddressSpace)
{
	auto c = make_command(TERN_AQ_CREATE_MR);
	c.create_mr.length = 1ull << 47;
	c.create_mr.pages.iova = host_.memory.alloc(TERN_TABLE_SIZE, TERN_TABLE_SIZE);
	c.create_mr.pages.levels = 4;
	c.create_mr.pages.page_shift = 12;
	c.create_mr.pdn = pd_;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD) << "only on demand";
	c.create_mr.flags = TERN_MR_ON_DEMAND;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	c.create_mr.pages.levels = 0;
	c.create_mr.pages.page_shift = 0;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD) << "without tables";
}

/* A fault before there is an EQ for its event. If the event were lost, the QP would wait for
 * ever. */
class PagingBeforeEvents : public Paging {
protected:
	void SetUp() override
	{
		set_up_without_events();
		paged_.emplace(
		        driver_.create_mr(pd_, kStart, kPages * kPage, kAllAccess, {4, 12, true}));
	}
};

TEST_F(PagingBeforeEvents, TheEventWaits)
{
	paged_->write(0, bytes(8));
	post(TERN_OP_SEND, at(0, 8));
	EXPECT_EQ(stat(TERN_STAT_PAGE_FAULTS), 1u);
	eq_.emplace(driver_.create_eq(0));
	EXPECT_TRUE(told());
	bring(0, false);
	resume(TERN_RESUME_RETRY, TERN_RESUME_NONE);
	EXPECT_EQ(all_sent().size(), 1u);
}

/* ---- requester ---- */

TEST_F(Paging, SendWaitsForWhatItSends)
{
	connect();
	paged_->write(0, bytes(3 * kMtu));
	post(TERN_OP_SEND, at(0, 3 * kMtu));
	EXPECT_FALSE(sent());
	EXPECT_TRUE(told());
	EXPECT_FALSE(told()) << "once";
	expect_fault(faults().requester, 0, 3 * kMtu, false);
	EXPECT_EQ(faults().responder.length.get(), 0u);
	EXPECT_EQ(stat(TERN_STAT_PAGE_FAULTS), 1u);

	bring(0, false);
	resume(TERN_RESUME_RETRY, TERN_RESUME_NONE);
	EXPECT_EQ(all_sent().size(), 3u);
	EXPECT_EQ(faults().requester.length.get(), 0u);
	answer(Opcode::RcAcknowledge, 2);
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
}

TEST_F(Paging, TheFirstAbsentByteIsNamed)
{
	connect();
	bring(0);
	post(TERN_OP_WRITE, at(kPage - 100, 2 * kPage));
	expect_fault(faults().requester, kPage, 2 * kPage - 100, false);
	EXPECT_FALSE(sent()) << "not even half a packet";
	/* A retry without pages waits again. */
	EXPECT_TRUE(told());
	resume(TERN_RESUME_RETRY, TERN_RESUME_NONE);
	EXPECT_TRUE(told());
	EXPECT_FALSE(sent());
}

TEST_F(Paging, AWaitCostsNoRetry)
{
	connect();
	bring(0);
	post(TERN_OP_WRITE, at(kPage - kMtu, 2 * kMtu));
	EXPECT_EQ(all_sent().size(), 1u);
	pass(10'000'000'000);
	EXPECT_TRUE(cq_->drain().empty());
	EXPECT_EQ(stat(TERN_STAT_REQ_TIMEOUTS), 0u);
	bring(1);
	resume(TERN_RESUME_RETRY, TERN_RESUME_NONE);
	EXPECT_EQ(all_sent().size(), 1u);
	answer(Opcode::RcAcknowledge, 1);
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
}

TEST_F(Paging, SendFails)
{
	connect();
	bring(0);
	post(TERN_OP_SEND, at(0, 8));
	post(TERN_OP_SEND, at(kPage, 8));
	resume(TERN_RESUME_FAIL, TERN_RESUME_NONE);
	EXPECT_TRUE(cq_->drain().empty()) << "the one before is under way";
	answer(Opcode::RcAcknowledge, 0);
	const auto cqes = cq_->drain();
	ASSERT_EQ(cqes.size(), 2u);
	EXPECT_EQ(cqes[0].status, TERN_WC_SUCCESS);
	EXPECT_EQ(cqes[1].status, TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

TEST_F(Paging, ReadAsksAgain)
{
	connect();
	const auto data = bytes(3 * kMtu);
	const auto part = [&](unsigned i) {
		return std::vector(data.begin() + i * kMtu, data.begin() + (i + 1) * kMtu);
	};
	bring(0);
	bring(1, false); /* to be read only */
	post(TERN_OP_READ, at(kPage - kMtu, 3 * kMtu));
	ASSERT_TRUE(sent());
	answer(Opcode::RcReadResponseFirst, 0, part(0));
	answer(Opcode::RcReadResponseMiddle, 1, part(1));
	answer(Opcode::RcReadResponseLast, 2, part(2));
	EXPECT_TRUE(told());
	expect_fault(faults().requester, kPage, 2 * kMtu, true);
	EXPECT_FALSE(sent());
	pass(10'000'000'000);
	EXPECT_FALSE(sent());

	bring(1);
	resume(TERN_RESUME_RETRY, TERN_RESUME_NONE);
	/* One that was on its way all the time. */
	answer(Opcode::RcReadResponseLast, 2, part(2));
	const auto again = all_sent();
	ASSERT_EQ(again.size(), 1u);
	EXPECT_EQ(again[0].opcode, Opcode::RcReadRequest);
	EXPECT_EQ(again[0].psn, psn_after(kSqPsn, 1));
	EXPECT_EQ(again[0].ext.reth.va, 0x1000 + kMtu);
	EXPECT_EQ(again[0].ext.reth.length, 2 * kMtu);
	EXPECT_EQ(stat(TERN_STAT_REQ_IMPLIED_NAK), 0u);
	answer(Opcode::RcReadResponseFirst, 1, part(1));
	answer(Opcode::RcReadResponseLast, 2, part(2));
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
	EXPECT_EQ(paged_->read(kPage - kMtu, 3 * kMtu), data);
}

TEST_F(Paging, AtomicResultAsksAgain)
{
	connect();
	post(TERN_OP_FETCH_ADD, at(8, 8));
	ASSERT_TRUE(sent());
	answer(Opcode::RcAtomicAcknowledge, 0);
	expect_fault(faults().requester, 8, 8, true);
	bring(0);
	resume(TERN_RESUME_RETRY, TERN_RESUME_NONE);
	const auto again = sent();
	ASSERT_TRUE(again);
	EXPECT_EQ(again->psn, psn_after(kSqPsn, 0)) << "the same request, for the peer to replay";
	answer(Opcode::RcAtomicAcknowledge, 0);
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
	EXPECT_EQ(paged_->read_u64(8), 0x1122334455667788u);
}

TEST_F(Paging, ReadFails)
{
	connect();
	post(TERN_OP_READ, at(0, 8));
	answer(Opcode::RcReadResponseOnly, 0, bytes(8));
	resume(TERN_RESUME_FAIL, TERN_RESUME_NONE);
	EXPECT_EQ(completed(), TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* ---- responder ---- */

TEST_F(Paging, WriteIsAskedForAgain)
{
	connect();
	const auto first = request(Opcode::RcWriteFirst, 0, kPage - kMtu, 2 * kMtu, bytes(kMtu));
	const auto last = request(Opcode::RcWriteLast, 1, kPage - kMtu, 2 * kMtu, bytes(kMtu, 99));
	bring(0);
	give(first);
	expect_aeth(0, kAethAck);
	give(last);
	expect_aeth(1, kRnr);
	EXPECT_TRUE(told());
	expect_fault(faults().responder, kPage, kMtu, true);
	give(last);
	expect_aeth(1, kRnr);
	EXPECT_FALSE(told()) << "the host knows";
	bring(1);
	resume(TERN_RESUME_NONE, TERN_RESUME_RETRY);
	EXPECT_FALSE(sent()) << "the peer comes by itself";
	give(last);
	expect_aeth(1, kAethAck);
	EXPECT_EQ(paged_->read(kPage, kMtu), bytes(kMtu, 99));
}

TEST_F(Paging, TheWholeWriteIsNamed)
{
	connect();
	give(request(Opcode::RcWriteFirst, 0, 16, 2 * kPage, bytes(kMtu)));
	expect_fault(faults().responder, 16, 2 * kPage, true);
}

TEST_F(Paging, SendKeepsItsReceive)
{
	connect();
	qp_->post_recv(at(0, kPage));
	const auto packet = request(Opcode::RcSendOnly, 0, 0, 0, bytes(100));
	give(packet);
	expect_aeth(0, kRnr);
	expect_fault(faults().responder, 0, kPage, true);
	EXPECT_TRUE(cq_->drain().empty());
	bring(0);
	resume(TERN_RESUME_NONE, TERN_RESUME_RETRY);
	give(packet);
	expect_aeth(0, kAethAck);
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
	EXPECT_EQ(paged_->read(0, 100), bytes(100));
}

TEST_F(Paging, ReceiveFails)
{
	connect();
	qp_->post_recv(at(0, kPage));
	give(request(Opcode::RcSendOnly, 0, 0, 0, bytes(100)));
	expect_aeth(0, kRnr);
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	expect_aeth(0, kOperationNak);
	EXPECT_EQ(completed(), TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

TEST_F(Paging, WriteFails)
{
	connect();
	give(request(Opcode::RcWriteOnly, 0, 0, 100, bytes(100)));
	expect_aeth(0, kRnr);
	events();
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	expect_aeth(0, kAccessNak);
	EXPECT_TRUE(event(TERN_EVENT_QP_ACCESS_ERR, qp_->number));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* The pages came another way, and the request with them: there is nothing left that could fail. */
TEST_F(Paging, LateFailureMeansNothing)
{
	connect();
	const auto packet = request(Opcode::RcWriteOnly, 0, 0, 100, bytes(100));
	give(packet);
	expect_aeth(0, kRnr);
	bring(0);
	give(packet);
	expect_aeth(0, kAethAck);
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_FALSE(sent());
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

TEST_F(Paging, ReadStopsInTheMiddle)
{
	connect();
	paged_->write(0, bytes(2 * kPage));
	bring(0, false);
	give(request(Opcode::RcReadRequest, 0, kPage - kMtu, 3 * kMtu));
	auto packets = all_sent();
	ASSERT_EQ(packets.size(), 2u);
	EXPECT_EQ(packets[0].opcode, Opcode::RcReadResponseFirst);
	EXPECT_EQ(packets[1].opcode, Opcode::RcAcknowledge);
	EXPECT_EQ(packets[1].ext.aeth.syndrome, kRnr);
	EXPECT_EQ(packets[1].psn, psn_after(kRqPsn, 1));
	expect_fault(faults().responder, kPage, 2 * kMtu, false);

	bring(1, false);
	resume(TERN_RESUME_NONE, TERN_RESUME_RETRY);
	EXPECT_FALSE(sent());
	give(request(Opcode::RcReadRequest, 1, kPage, 2 * kMtu));
	packets = all_sent();
	ASSERT_EQ(packets.size(), 2u);
	EXPECT_EQ(packets[0].psn, psn_after(kRqPsn, 1));
	EXPECT_EQ(packets[1].opcode, Opcode::RcReadResponseLast);
	EXPECT_EQ(packets[1].payload, paged_->read(kPage + kMtu, kMtu));
}

TEST_F(Paging, AtomicHappensOnce)
{
	connect();
	paged_->write_u64(0, 40);
	TestPacket add{.opcode = Opcode::RcFetchAdd, .psn = psn_after(kRqPsn, 0)};
	add.ext.atomic = {kStart, paged_->key, 2, 0};
	bring(0, false);
	give(add);
	expect_aeth(0, kRnr);
	EXPECT_EQ(paged_->read_u64(0), 40u);
	expect_fault(faults().responder, 0, 8, true);
	bring(0);
	resume(TERN_RESUME_NONE, TERN_RESUME_RETRY);
	give(add);
	give(add);
	const auto answers = all_sent();
	ASSERT_EQ(answers.size(), 2u);
	for (const auto &p : answers)
		EXPECT_EQ(p.ext.atomic_ack, 40u);
	EXPECT_EQ(paged_->read_u64(0), 42u);
}

TEST_F(Paging, BothSidesOneEventAtATime)
{
	connect();
	give(request(Opcode::RcWriteOnly, 0, 0, 100, bytes(100)));
	EXPECT_TRUE(told());
	post(TERN_OP_SEND, at(kPage, 8));
	EXPECT_FALSE(told());
	resume(TERN_RESUME_NONE, TERN_RESUME_RETRY);
	EXPECT_TRUE(told()) << "of the other side";
	expect_fault(faults().requester, kPage, 8, false);
	EXPECT_EQ(faults().responder.length.get(), 0u);
}

/* A window's fault is one of the region behind it. */
TEST_F(Paging, Window)
{
	connect();
	const uint32_t key = driver_.alloc_mw(pd_, TERN_MW_TYPE_2, 1);
	SendRequest bind{.opcode = TERN_OP_BIND_MW, .flags = 0};
	bind.bind.emplace();
	bind.bind->addr = kStart + kPage;
	bind.bind->length = uint64_t{kPage};
	bind.bind->rkey = key;
	bind.bind->lkey = paged_->key;
	bind.bind->access = TERN_ACCESS_REMOTE_WRITE | TERN_ACCESS_ZERO_BASED;
	qp_->post_send(bind);
	run();
	auto write = request(Opcode::RcWriteOnly, 0, 0, 100, bytes(100));
	write.ext.reth = {8, key, 100};
	give(write);
	expect_aeth(0, kRnr);
	expect_fault(faults().responder, kPage + 8, 100, true);
}

TEST_F(Paging, ErrorEndsTheWait)
{
	connect();
	qp_->post_recv(at(0, kPage));
	give(request(Opcode::RcSendOnly, 0, 0, 0, bytes(100)));
	post(TERN_OP_SEND, at(kPage, 8));
	ASSERT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	EXPECT_EQ(faults().requester.length.get(), 0u);
	EXPECT_EQ(faults().responder.length.get(), 0u);
	EXPECT_EQ(cq_->drain().size(), 2u);
	all_sent();
	resume(TERN_RESUME_FAIL, TERN_RESUME_FAIL);
	EXPECT_TRUE(cq_->drain().empty());
	EXPECT_FALSE(sent());
}

/* The host was told of a fault before a RESET, and has not answered. The QP waits for another page
 * since. */
class PagingAfterReset : public Paging {
protected:
	void SetUp() override
	{
		Paging::SetUp();
		connect();
		give(request(Opcode::RcWriteOnly, 0, 0, 100, bytes(100)));
		EXPECT_TRUE(told());
		expect_fault(faults().responder, 0, 100, true);
		ASSERT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
		qp_->connect(connection());
		all_sent();

		give(request(Opcode::RcWriteOnly, 0, kPage, 8, bytes(8)));
		expect_aeth(0, kRnr);
	}
};

/* The host answers what it was told before the RESET. */
TEST_F(PagingAfterReset, AnAnswerIsNotForTheNextLifeOfAQp)
{
	post(TERN_OP_SEND, at(2 * kPage, 8));
	EXPECT_FALSE(told()) << "a second event before RESUME_QP";
	resume_only(TERN_RESUME_FAIL, TERN_RESUME_FAIL);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	EXPECT_FALSE(sent());
	EXPECT_TRUE(cq_->drain().empty());
	EXPECT_TRUE(told());
	expect_fault(faults().responder, kPage, 8, true);
	expect_fault(faults().requester, 2 * kPage, 8, false);
	resume_only(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	expect_aeth(0, kAccessNak);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* `rdma resource show qp` and debugfs execute QUERY_FAULT, too. */
TEST_F(PagingAfterReset, WhoOnlyLooksMakesNoFaultAnOlderOne)
{
	expect_fault(faults().responder, kPage, 8, true); /* somebody looks */
	resume_only(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	EXPECT_TRUE(told());
	expect_fault(faults().responder, kPage, 8, true);
	resume_only(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	expect_aeth(0, kAccessNak);
}

/* A host that finds no fault answers the event all the same. */
TEST_F(Paging, AnEventFromBeforeAResetIsAnswered)
{
	connect();
	give(request(Opcode::RcWriteOnly, 0, 0, 100, bytes(100)));
	EXPECT_TRUE(told());
	ASSERT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	EXPECT_EQ(faults().responder.length.get(), 0u);
	qp_->connect(connection());
	give(request(Opcode::RcWriteOnly, 0, kPage, 8, bytes(8)));
	resume_only(TERN_RESUME_NONE, TERN_RESUME_NONE);
	EXPECT_TRUE(told());
	expect_fault(faults().responder, kPage, 8, true);
}

TEST_F(Paging, AFaultAfterTheQueryIsNotAnswered)
{
	connect();
	give(request(Opcode::RcWriteOnly, 0, 0, 100, bytes(100)));
	EXPECT_TRUE(told());
	expect_fault(faults().responder, 0, 100, true);
	post(TERN_OP_SEND, at(kPage, 8));
	resume_only(TERN_RESUME_FAIL, TERN_RESUME_RETRY);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	EXPECT_TRUE(told());
	expect_fault(faults().requester, kPage, 8, false);
	EXPECT_EQ(faults().responder.length.get(), 0u);
}

/* Describing a QP is not QUERY_FAULT. */
TEST_F(Paging, WhoOnlyLooksHasNotBeenTold)
{
	connect();
	post(TERN_OP_SEND, at(kPage, 8));
	EXPECT_NE(card_.describe(qp_->number).find("\"requester\":{\"key\""), std::string::npos);
	resume_only(TERN_RESUME_FAIL, TERN_RESUME_NONE);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
}

/* A table that is out of reach is no page to wait for. */
TEST_F(Paging, BrokenTables)
{
	connect();
	bring(0);
	host_.memory.fault(paged_->buffer.pages().iova.get(), 4096, FakeMemory::Fault::Reads);
	post(TERN_OP_SEND, at(0, 8));
	EXPECT_EQ(completed(), TERN_WC_LOC_PROT_ERR);
	EXPECT_FALSE(told());
}

/* ---- unreliable services ---- */

TEST_F(Paging, UcSendWaitsAndFails)
{
	connect(TERN_QPT_UC);
	post(TERN_OP_SEND, at(0, 8));
	EXPECT_TRUE(told());
	bring(0);
	resume(TERN_RESUME_RETRY, TERN_RESUME_NONE);
	EXPECT_TRUE(sent());
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
	post(TERN_OP_WRITE, at(kPage, 8));
	resume(TERN_RESUME_FAIL, TERN_RESUME_NONE);
	EXPECT_EQ(completed(), TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_SQE);
}

TEST_F(Paging, UcDropsWhatItCannotPlace)
{
	connect(TERN_QPT_UC);
	qp_->post_recv(at(0, kPage));
	give(request(Opcode::RcSendOnly, 0, 0, 0, bytes(100), Service::Uc));
	EXPECT_TRUE(told());
	EXPECT_TRUE(cq_->drain().empty());
	EXPECT_EQ(stat(TERN_STAT_UC_RX_DROPPED), 1u);
	bring(0);
	resume(TERN_RESUME_NONE, TERN_RESUME_RETRY);
	give(request(Opcode::RcSendOnly, 1, 0, 0, bytes(50, 7), Service::Uc));
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
	EXPECT_EQ(paged_->read(0, 50), bytes(50, 7));

	give(request(Opcode::RcWriteOnly, 2, kPage, 8, bytes(8), Service::Uc));
	EXPECT_TRUE(told());
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS) << "nobody is told of a WRITE";
}

/* A receive WQE waits for the next message, as its page is there now. */
TEST_F(Paging, UcWriteThatFailsIsNoFaultOfTheReceive)
{
	connect(TERN_QPT_UC);
	qp_->post_recv(at(0, kPage));
	give(request(Opcode::RcSendOnly, 0, 0, 0, bytes(100), Service::Uc));
	EXPECT_TRUE(told());
	bring(0);
	resume(TERN_RESUME_NONE, TERN_RESUME_RETRY);
	give(request(Opcode::RcWriteOnly, 1, kPage, 8, bytes(8), Service::Uc));
	EXPECT_TRUE(told());
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	give(request(Opcode::RcSendOnly, 2, 0, 0, bytes(50, 7), Service::Uc));
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
}

/* The other order: the receive's fault is not the one that the host is told of. */
TEST_F(Paging, UcReceiveIsNotAtFaultForAnEarlierWrite)
{
	connect(TERN_QPT_UC);
	qp_->post_recv(at(0, kPage));
	give(request(Opcode::RcWriteOnly, 0, kPage, 8, bytes(8), Service::Uc));
	EXPECT_TRUE(told());
	give(request(Opcode::RcSendOnly, 1, 0, 0, bytes(100), Service::Uc));
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	EXPECT_TRUE(cq_->drain().empty());

	give(request(Opcode::RcSendOnly, 2, 0, 0, bytes(100), Service::Uc));
	EXPECT_TRUE(told());
	expect_fault(faults().responder, 0, kPage, true);
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_EQ(completed(), TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* A fault that goes on, however many messages meet it, is still the receive's. */
TEST_F(Paging, UcReceiveFailsAfterSeveralMessages)
{
	connect(TERN_QPT_UC);
	qp_->post_recv(at(0, kPage));
	for (uint32_t i = 0; i < 3; i++)
		give(request(Opcode::RcSendOnly, i, 0, 0, bytes(100), Service::Uc));
	give(request(Opcode::RcWriteOnly, 3, kPage, 8, bytes(8), Service::Uc));
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_EQ(completed(), TERN_WC_LOC_PROT_ERR);
}

TEST_F(Paging, UdReceiveIsNotAtFaultForAnEarlierOne)
{
	connect(TERN_QPT_UD);
	qp_->post_recv(at(0, kPage));
	qp_->post_recv(at(kPage, kPage));
	give(datagram(100));
	bring(0);
	give(datagram(100));
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
	give(datagram(100));
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_EQ(qp_state(), TERN_QPS_RTS);
	EXPECT_TRUE(cq_->drain().empty());
}

/* Its header has found its page, and its data waits for another one, also when a further datagram
 * comes meanwhile. */
TEST_F(Paging, UdReceiveIsAtFaultForItsSecondPage)
{
	connect(TERN_QPT_UD);
	bring(0);
	qp_->post_recv(at(kPage - kGrh, kPage));
	give(datagram(100));
	give(datagram(100));
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_EQ(completed(), TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

TEST_F(Paging, UdSend)
{
	connect(TERN_QPT_UD);
	paged_->write(0, bytes(8));
	post(TERN_OP_SEND, at(0, 8));
	EXPECT_FALSE(sent());
	expect_fault(faults().requester, 0, 8, false);
	bring(0);
	resume(TERN_RESUME_RETRY, TERN_RESUME_NONE);
	const auto p = sent();
	ASSERT_TRUE(p);
	EXPECT_EQ(p->payload, bytes(8));
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
	post(TERN_OP_SEND, at(kPage, 8));
	resume(TERN_RESUME_FAIL, TERN_RESUME_NONE);
	EXPECT_EQ(completed(), TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_SQE);
}

TEST_F(Paging, UdKeepsItsReceive)
{
	connect(TERN_QPT_UD);
	qp_->post_recv(at(0, kPage));
	give(datagram(100));
	EXPECT_TRUE(told());
	EXPECT_TRUE(cq_->drain().empty());
	bring(0);
	resume(TERN_RESUME_NONE, TERN_RESUME_RETRY);
	give(datagram(60));
	EXPECT_EQ(completed(), TERN_WC_SUCCESS);
	EXPECT_EQ(paged_->read(kGrh, 60), bytes(60));

	qp_->post_recv(at(kPage, kPage));
	give(datagram(100));
	resume(TERN_RESUME_NONE, TERN_RESUME_FAIL);
	EXPECT_EQ(completed(), TERN_WC_LOC_PROT_ERR);
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

} // namespace
} // namespace tern::test
