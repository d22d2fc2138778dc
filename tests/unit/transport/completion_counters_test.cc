// SPDX-License-Identifier: GPL-2.0-or-later
/* Completion counters: the commands, and what of a QP they count when. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint32_t kMtu = 256;
constexpr uint32_t kQkey = 0x11223344;
constexpr uint64_t kInbox = 0x10000;
constexpr uint32_t kAll = TERN_COMP_SEND | TERN_COMP_RECV | TERN_COMP_READ | TERN_COMP_REMOTE_READ |
                          TERN_COMP_WRITE | TERN_COMP_REMOTE_WRITE;

/** A counter, and its record. */
struct Counter {
	uint32_t id = 0;
	Iova record = 0;
};

/** The two values of a counter. */
struct Values {
	uint64_t completed = 0;
	uint64_t failed = 0;
	bool operator==(const Values &) const = default;
};

void PrintTo(const Values &values, std::ostream *to)
{
	*to << values.completed << " completed, " << values.failed << " failed";
}

class CompletionCounters : public OneCard {
protected:
	void SetUp() override { set_up_card(); }

	tern_hw_aq_cmd create_command(tern_hw_comp_unit unit, Iova record)
	{
		auto c = make_command(TERN_AQ_CREATE_COMP_COUNTER);
		c.create_comp_counter.record = record;
		c.create_comp_counter.unit = static_cast<uint8_t>(unit);
		return c;
	}
	Counter create(tern_hw_comp_unit unit = TERN_COMP_REQUESTS)
	{
		Counter counter;
		counter.record = host_.memory.alloc(sizeof(tern_hw_comp_record), 64);
		host_.memory.put(counter.record, ~uint64_t{0});
		const auto result = driver_.command(create_command(unit, counter.record));
		EXPECT_EQ(result.status, TERN_AQ_OK);
		counter.id = result.created.id.get();
		return counter;
	}
	tern_hw_aq_status destroy(const Counter &counter)
	{
		auto c = make_command(TERN_AQ_DESTROY_COMP_COUNTER);
		c.object.id = counter.id;
		return driver_.status_of(c);
	}
	tern_hw_aq_status attach(const HostQp &qp, const Counter &counter, uint32_t ops)
	{
		auto c = make_command(TERN_AQ_ATTACH_COMP_COUNTER);
		c.attach_comp_counter.qpn = qp.number;
		c.attach_comp_counter.id = counter.id;
		c.attach_comp_counter.ops = ops;
		return driver_.status_of(c);
	}
	tern_hw_aq_status change(const Counter &counter, tern_hw_comp_value value,
	                         tern_hw_comp_change how, uint64_t operand)
	{
		auto c = make_command(TERN_AQ_MODIFY_COMP_COUNTER);
		c.modify_comp_counter.operand = operand;
		c.modify_comp_counter.id = counter.id;
		c.modify_comp_counter.value = static_cast<uint8_t>(value);
		c.modify_comp_counter.change = static_cast<uint8_t>(how);
		return driver_.status_of(c);
	}
	Values values(const Counter &counter) const
	{
		const auto record = host_.memory.get<tern_hw_comp_record>(counter.record);
		return {record.completed.get(), record.failed.get()};
	}

	void make(tern_hw_qp_type type)
	{
		QpOptions options;
		options.pd = pd_;
		options.send_cqn = options.recv_cqn = cq_->number;
		options.type = static_cast<uint8_t>(type);
		qp_ = driver_.create_qp(options);
	}
	/** A connected QP whose operations @ops are counted by the counter that it returns. */
	Counter connect(uint32_t ops, tern_hw_comp_unit unit = TERN_COMP_REQUESTS,
	                tern_hw_qp_type type = TERN_QPT_RC)
	{
		const Counter counter = create(unit);
		make(type);
		EXPECT_EQ(attach(*qp_, counter, ops), TERN_AQ_OK);
		qp_->connect(connection());
		return counter;
	}

	SendRequest request(uint8_t opcode, uint32_t length, uint8_t flags = 0) const
	{
		return {.opcode = opcode,
		        .flags = flags,
		        .remote_addr = 0x1000,
		        .rkey = 0x77,
		        .sges = {mr_->sge(0, length)}};
	}
	void post(const SendRequest &request)
	{
		qp_->post_send(request);
		run();
	}
	void acknowledge(uint32_t n, uint8_t syndrome = kAethAck | kCreditsInvalid)
	{
		TestPacket ack{.psn = psn_after(kSqPsn, n)};
		ack.ext.aeth = {syndrome, 0};
		give(ack);
	}
	TestPacket request_packet(Opcode opcode, uint32_t n, uint32_t length, size_t size = 0,
	                          Service service = Service::Rc) const
	{
		TestPacket p{.opcode = opcode,
		             .service = service,
		             .psn = psn_after(kRqPsn, n),
		             .payload = std::vector<std::byte>(size)};
		p.ext.reth = {mr_->va, mr_->key, length};
		return p;
	}
	void post_recv() { qp_->post_recv(mr_->sge(kInbox, 0x1000)); }
};

/* ---- commands ---- */

TEST_F(CompletionCounters, ANewOneIsZero)
{
	EXPECT_NE(card_.read_register(TERN_REG_CAPS) & TERN_CAP_COMP_COUNTERS, 0u);
	EXPECT_EQ(values(create()), (Values{0, 0}));
}

TEST_F(CompletionCounters, CreationChecksItsFields)
{
	const Iova record = host_.memory.alloc(64, 64);
	auto c = create_command(TERN_COMP_BYTES, record + 8);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c = create_command(static_cast<tern_hw_comp_unit>(2), record);
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c = create_command(TERN_COMP_BYTES, record);
	c.create_comp_counter.db_page = 1u << 20;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c = create_command(TERN_COMP_BYTES, record);
	c.create_comp_counter.rsvd[2] = 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(driver_.status_of(create_command(TERN_COMP_BYTES, 0x1000)), TERN_AQ_DMA_FAULT);
}

TEST_F(CompletionCounters, ValuesAreSetAndIncrementedByThemselves)
{
	const Counter counter = create();
	EXPECT_EQ(change(counter, TERN_COMP_COMPLETED, TERN_COMP_SET, 7), TERN_AQ_OK);
	EXPECT_EQ(change(counter, TERN_COMP_FAILED, TERN_COMP_ADD, 3), TERN_AQ_OK);
	EXPECT_EQ(change(counter, TERN_COMP_COMPLETED, TERN_COMP_ADD, 5), TERN_AQ_OK);
	EXPECT_EQ(values(counter), (Values{12, 3}));
	EXPECT_EQ(change(counter, TERN_COMP_COMPLETED, TERN_COMP_SET, ~uint64_t{0}), TERN_AQ_OK);
	EXPECT_EQ(change(counter, TERN_COMP_COMPLETED, TERN_COMP_ADD, 2), TERN_AQ_OK);
	EXPECT_EQ(values(counter), (Values{1, 3}));
	EXPECT_EQ(change(counter, static_cast<tern_hw_comp_value>(2), TERN_COMP_SET, 0),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(change(counter, TERN_COMP_FAILED, static_cast<tern_hw_comp_change>(2), 0),
	          TERN_AQ_BAD_FIELD);
	EXPECT_EQ(change({}, TERN_COMP_FAILED, TERN_COMP_SET, 0), TERN_AQ_BAD_OBJECT);
	host_.memory.fault(counter.record, sizeof(tern_hw_comp_record));
	EXPECT_EQ(change(counter, TERN_COMP_COMPLETED, TERN_COMP_SET, 9), TERN_AQ_DMA_FAULT);
	host_.memory.heal();
	EXPECT_EQ(change(counter, TERN_COMP_COMPLETED, TERN_COMP_ADD, 1), TERN_AQ_OK);
	EXPECT_EQ(values(counter), (Values{2, 3}));
}

TEST_F(CompletionCounters, AnOperationHasOneCounter)
{
	const Counter first = create();
	const Counter second = create();
	make(TERN_QPT_RC);
	EXPECT_EQ(attach(*qp_, first, TERN_COMP_SEND | TERN_COMP_RECV), TERN_AQ_OK);
	EXPECT_EQ(attach(*qp_, second, TERN_COMP_RECV | TERN_COMP_READ), TERN_AQ_BUSY);
	EXPECT_EQ(attach(*qp_, second, TERN_COMP_READ), TERN_AQ_OK);
	EXPECT_EQ(attach(*qp_, first, TERN_COMP_WRITE), TERN_AQ_OK);
}

TEST_F(CompletionCounters, OnlyBeforeTheQpReceives)
{
	const Counter counter = create();
	make(TERN_QPT_RC);
	qp_->to_init(connection());
	EXPECT_EQ(attach(*qp_, counter, TERN_COMP_SEND), TERN_AQ_OK);
	qp_->to_rtr(connection());
	EXPECT_EQ(attach(*qp_, counter, TERN_COMP_RECV), TERN_AQ_BAD_STATE);
}

TEST_F(CompletionCounters, OnlyOperationsOfTheService)
{
	const Counter counter = create();
	const struct {
		tern_hw_qp_type type;
		uint32_t ops;
	} cases[] = {
	        {TERN_QPT_RC, kAll},
	        {TERN_QPT_UC, kAll & ~(TERN_COMP_READ | TERN_COMP_REMOTE_READ)},
	        {TERN_QPT_UD, TERN_COMP_SEND | TERN_COMP_RECV},
	        {TERN_QPT_RAW, 0},
	};
	for (const auto &[type, ops] : cases) {
		make(type);
		for (uint32_t op = 1; op <= TERN_COMP_REMOTE_WRITE; op <<= 1)
			EXPECT_EQ(attach(*qp_, counter, op),
			          ops & op ? TERN_AQ_OK : TERN_AQ_BAD_FIELD)
			        << "type " << type << " operation " << op;
	}
	make(TERN_QPT_RC);
	EXPECT_EQ(attach(*qp_, counter, 0), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(attach(*qp_, counter, TERN_COMP_REMOTE_WRITE << 1), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(attach(*qp_, {}, TERN_COMP_SEND), TERN_AQ_BAD_OBJECT);
}

TEST_F(CompletionCounters, OneInUseIsNotDestroyed)
{
	const Counter counter = connect(TERN_COMP_SEND | TERN_COMP_RECV);
	EXPECT_EQ(destroy(counter), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, qp_->number), TERN_AQ_OK);
	EXPECT_EQ(destroy(counter), TERN_AQ_OK);
	EXPECT_EQ(destroy(counter), TERN_AQ_BAD_OBJECT);
}

/* ---- the requester ---- */

TEST_F(CompletionCounters, RequestsCountWhenTheyAreAcknowledged)
{
	const Counter sends = create();
	const Counter writes = create();
	make(TERN_QPT_RC);
	ASSERT_EQ(attach(*qp_, sends, TERN_COMP_SEND), TERN_AQ_OK);
	ASSERT_EQ(attach(*qp_, writes, TERN_COMP_WRITE), TERN_AQ_OK);
	qp_->connect(connection());
	post(request(TERN_OP_SEND, 8, TERN_WQE_SIGNALED));
	post(request(TERN_OP_SEND_IMM, 8)); /* without a completion */
	post(request(TERN_OP_WRITE, 2 * kMtu));
	post(request(TERN_OP_WRITE_IMM, 0));
	EXPECT_EQ(values(sends), (Values{0, 0}));
	acknowledge(0);
	EXPECT_EQ(values(sends), (Values{1, 0}));
	acknowledge(2); /* the first half of the WRITE */
	EXPECT_EQ(values(sends), (Values{2, 0}));
	EXPECT_EQ(values(writes), (Values{0, 0}));
	acknowledge(4);
	EXPECT_EQ(values(writes), (Values{2, 0}));
	EXPECT_EQ(cq_->drain().size(), 1u);
}

TEST_F(CompletionCounters, ReadsCountWhenTheirDataIsHere)
{
	const Counter counter = connect(TERN_COMP_READ, TERN_COMP_BYTES);
	post(request(TERN_OP_READ, kMtu + 10));
	TestPacket response{.opcode = Opcode::RcReadResponseFirst,
	                    .psn = psn_after(kSqPsn, 0),
	                    .payload = std::vector<std::byte>(kMtu)};
	response.ext.aeth = {kAethAck | kCreditsInvalid, 0};
	give(response);
	EXPECT_EQ(values(counter), (Values{0, 0}));
	response.opcode = Opcode::RcReadResponseLast;
	response.psn = psn_after(kSqPsn, 1);
	response.payload.resize(10);
	give(response);
	EXPECT_EQ(values(counter), (Values{kMtu + 10, 0}));
}

/* What belongs to no operation of the interface, and what the program did not ask to count. */
TEST_F(CompletionCounters, OtherRequestsCountNowhere)
{
	const Counter counter = connect(TERN_COMP_SEND | TERN_COMP_READ);
	SendRequest add = request(TERN_OP_FETCH_ADD, 8);
	post(add);
	TestPacket answer{.opcode = Opcode::RcAtomicAcknowledge, .psn = psn_after(kSqPsn, 0)};
	answer.ext.aeth = {kAethAck | kCreditsInvalid, 0};
	give(answer);
	post(request(TERN_OP_WRITE, 8, TERN_WQE_SIGNALED));
	acknowledge(1);
	EXPECT_EQ(cq_->drain().size(), 1u);
	EXPECT_EQ(values(counter), (Values{0, 0}));
}

/* Of a failure all requests behind it are flushed, with a completion or without. */
TEST_F(CompletionCounters, FailedAndFlushedRequestsAreErrors)
{
	const Counter counter = connect(TERN_COMP_SEND | TERN_COMP_WRITE, TERN_COMP_BYTES);
	post(request(TERN_OP_SEND, 8));
	post(request(TERN_OP_WRITE, 8));
	post(request(TERN_OP_SEND, 8));
	acknowledge(0);
	acknowledge(1, nak_syndrome(NakCode::RemoteAccessError));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	EXPECT_EQ(values(counter), (Values{8, 2}));
	post(request(TERN_OP_SEND, 8)); /* posted too late */
	EXPECT_EQ(values(counter), (Values{8, 3}));
}

/* ---- the responder ---- */

TEST_F(CompletionCounters, ReceivesCountTheirBytes)
{
	const Counter requests = create();
	const Counter bytes = create(TERN_COMP_BYTES);
	make(TERN_QPT_RC);
	ASSERT_EQ(attach(*qp_, requests, TERN_COMP_REMOTE_WRITE), TERN_AQ_OK);
	ASSERT_EQ(attach(*qp_, bytes, TERN_COMP_RECV), TERN_AQ_OK);
	qp_->connect(connection());
	post_recv();
	post_recv();
	give(request_packet(Opcode::RcSendOnly, 0, 0, 100));
	EXPECT_EQ(values(bytes), (Values{100, 0}));
	/* A WRITE with immediate takes a receive WQE, too. */
	give(request_packet(Opcode::RcWriteOnlyImm, 1, 40, 40));
	EXPECT_EQ(values(bytes), (Values{140, 0}));
	EXPECT_EQ(values(requests), (Values{1, 0}));
	post_recv();
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	run();
	EXPECT_EQ(values(bytes), (Values{140, 1}));
}

TEST_F(CompletionCounters, WritesOfThePeerCountOnce)
{
	const Counter counter = connect(TERN_COMP_REMOTE_WRITE);
	give(request_packet(Opcode::RcWriteFirst, 0, 2 * kMtu, kMtu));
	EXPECT_EQ(values(counter), (Values{0, 0}));
	const auto last = request_packet(Opcode::RcWriteLast, 1, 0, kMtu);
	give(last);
	give(last); /* again, as if the acknowledgement were lost */
	EXPECT_EQ(values(counter), (Values{1, 0}));
	auto bad = request_packet(Opcode::RcWriteOnly, 2, 8, 8);
	bad.ext.reth.rkey ^= 1;
	give(bad);
	EXPECT_EQ(values(counter), (Values{1, 1}));
}

TEST_F(CompletionCounters, ReadsOfThePeerCountOnceWhenTheyAreAnswered)
{
	const Counter counter = connect(TERN_COMP_REMOTE_READ, TERN_COMP_BYTES);
	const auto read = request_packet(Opcode::RcReadRequest, 0, kMtu + 1);
	host_.wire.accept_only(1);
	give(read);
	EXPECT_EQ(values(counter), (Values{0, 0}));
	open_wire();
	EXPECT_EQ(values(counter), (Values{kMtu + 1, 0}));
	give(read); /* again, as if the responses were lost */
	EXPECT_EQ(all_sent().size(), 4u);
	EXPECT_EQ(values(counter), (Values{kMtu + 1, 0}));
	give(request_packet(Opcode::RcReadRequest, 2, 0));
	EXPECT_EQ(values(counter), (Values{kMtu + 1, 0}));
	auto bad = request_packet(Opcode::RcReadRequest, 3, 8);
	bad.ext.reth.rkey ^= 1;
	give(bad);
	EXPECT_EQ(values(counter), (Values{kMtu + 1, 1}));
}

/* The peer repeats it from the absent page on. */
TEST_F(CompletionCounters, AReadThatWaitsForPagesCountsOnce)
{
	constexpr uint32_t kPage = 4096;
	HostMr paged = driver_.create_mr(pd_, mr_->va, 2 * kPage, kAllAccess, {4, 12, true});
	const Counter bytes = connect(TERN_COMP_REMOTE_READ, TERN_COMP_BYTES);
	paged.buffer.bring(0, false);
	auto read = request_packet(Opcode::RcReadRequest, 0, 3 * kMtu);
	const uint64_t to_page = kPage - mr_->va % kPage;
	read.ext.reth.rkey = paged.key;
	read.ext.reth.va += to_page - kMtu;
	give(read);
	EXPECT_EQ(values(bytes), (Values{0, 0}));
	paged.buffer.bring(1, false);
	auto c = make_command(TERN_AQ_RESUME_QP);
	c.resume_qp.qpn = qp_->number;
	c.resume_qp.responder = TERN_RESUME_RETRY;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_OK);
	read.psn = psn_after(read.psn, 1);
	read.ext.reth.va += kMtu;
	read.ext.reth.length -= kMtu;
	give(read);
	EXPECT_EQ(values(bytes), (Values{3 * kMtu, 0}));
	give(read);
	EXPECT_EQ(values(bytes), (Values{3 * kMtu, 0}));
}

/* The program may change the data as soon as the READ is counted. */
TEST_F(CompletionCounters, CountedReadsOfThePeerAreNotLent)
{
	host_.wire.borrows = true;
	connect(TERN_COMP_REMOTE_READ);
	give(request_packet(Opcode::RcReadRequest, 0, 2 * kMtu));
	EXPECT_TRUE(host_.wire.loans().empty());
	EXPECT_EQ(all_sent().size(), 2u);
}

/* A count that cannot be written is lost, of which the program has to hear. */
TEST_F(CompletionCounters, AFaultOfTheRecordFailsTheQp)
{
	const Counter counter = connect(TERN_COMP_SEND);
	events();
	post(request(TERN_OP_SEND, 8));
	host_.memory.fault(counter.record, sizeof(tern_hw_comp_record));
	acknowledge(0);
	EXPECT_TRUE(event(TERN_EVENT_QP_FATAL, qp_->number));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* ---- other services ---- */

TEST_F(CompletionCounters, UnreliableConnections)
{
	const Counter counter = connect(TERN_COMP_SEND | TERN_COMP_RECV | TERN_COMP_REMOTE_WRITE,
	                                TERN_COMP_REQUESTS, TERN_QPT_UC);
	post(request(TERN_OP_SEND, 2 * kMtu));
	EXPECT_EQ(values(counter), (Values{1, 0}));
	post_recv();
	give(request_packet(Opcode::RcSendOnly, 0, 0, 10, Service::Uc));
	give(request_packet(Opcode::RcWriteOnly, 1, 10, 10, Service::Uc));
	EXPECT_EQ(values(counter), (Values{3, 0}));
	SendRequest bad = request(TERN_OP_SEND, 8);
	bad.sges[0].lkey ^= 1;
	post(bad);
	EXPECT_EQ(values(counter), (Values{3, 1}));
}

TEST_F(CompletionCounters, Datagrams)
{
	const Counter counter = create(TERN_COMP_BYTES);
	make(TERN_QPT_UD);
	ASSERT_EQ(attach(*qp_, counter, TERN_COMP_SEND | TERN_COMP_RECV), TERN_AQ_OK);
	qp_->start(kQkey, kSqPsn);
	SendRequest datagram{.opcode = TERN_OP_SEND, .flags = 0, .sges = {mr_->sge(0, 70)}};
	tern_hw_ud_seg to{};
	std::ranges::copy(kPeerGid.bytes, to.dgid);
	std::ranges::copy(kPeerMac, to.dmac);
	to.dest_qpn = kPeerQpn;
	to.qkey = kQkey;
	datagram.to = to;
	post(datagram);
	EXPECT_EQ(values(counter), (Values{70, 0}));
	post_recv();
	TestPacket p{.opcode = Opcode::RcSendOnly,
	             .service = Service::Ud,
	             .payload = std::vector<std::byte>(30)};
	p.ext.deth = {kQkey, kPeerQpn};
	give(p);
	EXPECT_EQ(values(counter), (Values{70 + 40 + 30, 0})); /* with the GRH */
}

} // namespace
} // namespace tern::test
