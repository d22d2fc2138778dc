// SPDX-License-Identifier: GPL-2.0-or-later
/* Work requests on keys: windows, fast registration, invalidation here and by the peer. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr size_t kMtu = 256;
constexpr uint8_t kAccessNak = nak_syndrome(NakCode::RemoteAccessError);
constexpr uint8_t kRemote = TERN_ACCESS_REMOTE_WRITE | TERN_ACCESS_REMOTE_READ;

class LocalWork : public OneCard {
protected:
	void SetUp() override
	{
		set_up_card();
		region_.emplace(
		        driver_.create_mr(pd_, kBase, 0x4000, kAllAccess | TERN_ACCESS_MW_BIND));
		qp_ = make_qp();
		qp_->connect(connection());
		qp_->post_recv(mr_->sge(0x10000, 4096));
		events();
	}

	SendRequest bind(uint32_t rkey, uint64_t offset, uint64_t length, uint8_t access) const
	{
		SendRequest r{.opcode = TERN_OP_BIND_MW};
		r.bind.emplace();
		r.bind->addr = kBase + offset;
		r.bind->length = length;
		r.bind->rkey = rkey;
		r.bind->lkey = region_->key;
		r.bind->access = access;
		return r;
	}
	SendRequest reg(uint32_t key, uint64_t start, uint64_t length, uint8_t access) const
	{
		SendRequest r{.opcode = TERN_OP_REG_MR};
		r.reg.emplace();
		r.reg->start = start;
		r.reg->length = length;
		r.reg->pages = region_->buffer.pages();
		r.reg->key = key;
		r.reg->access = access;
		return r;
	}
	static SendRequest invalidate(uint32_t key)
	{
		return {.opcode = TERN_OP_LOCAL_INV, .imm = key};
	}
	SendRequest send(uint32_t length = 10) const { return {.sges = {mr_->sge(0, length)}}; }

	/** Posts, and returns the status of all that completed. */
	std::vector<int> post(const SendRequest &request)
	{
		qp_->post_send(request);
		run();
		return statuses();
	}
	std::vector<int> statuses()
	{
		std::vector<int> all;
		for (const auto &cqe : cq_->drain())
			all.push_back(cqe.status);
		return all;
	}
	void ack(uint32_t n)
	{
		TestPacket p{.psn = psn_after(kSqPsn, n)};
		p.ext.aeth = {kAethAck | kCreditsInvalid, n + 1};
		give(p);
	}
	/** The peer writes @size bytes; whether it may. A QP that refused is connected anew. */
	bool peer_writes(uint32_t rkey, uint64_t va, size_t size)
	{
		TestPacket p{.opcode = Opcode::RcWriteOnly,
		             .psn = psn_after(kRqPsn, expected_),
		             .ack_request = true,
		             .payload = std::vector<std::byte>(size, std::byte{0x77})};
		p.ext.reth = {va, rkey, static_cast<uint32_t>(size)};
		host_.wire.clear();
		give(p);
		const auto answer = sent();
		EXPECT_TRUE(answer);
		if (answer && (answer->ext.aeth.syndrome & kAethKindMask) == kAethAck) {
			expected_++;
			return true;
		}
		EXPECT_EQ(answer->ext.aeth.syndrome, kAccessNak);
		EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
		qp_->forget();
		qp_->connect(connection());
		cq_->drain();
		expected_ = 0;
		return false;
	}

	static constexpr uint64_t kBase = 0x40000000;
	using Statuses = std::vector<int>;
	const Statuses kOk{TERN_WC_SUCCESS};
	const Statuses kBindError{TERN_WC_MW_BIND_ERR};

	std::optional<HostMr> region_;
	uint32_t expected_ = 0; /* requests of the peer so far */
};

/* ---- windows ---- */

TEST_F(LocalWork, Window1)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	EXPECT_FALSE(peer_writes(mw, kBase, 1));
	EXPECT_EQ(post(bind(mw + 1, 0x1000, 0x100, kRemote)), kOk);
	EXPECT_TRUE(peer_writes(mw + 1, kBase + 0x1000, 0x100));
	EXPECT_EQ(region_->read(0x1000, 0x100), std::vector<std::byte>(0x100, std::byte{0x77}));
	/* The part, and no more; the key before is void. */
	EXPECT_FALSE(peer_writes(mw + 1, kBase + 0x1001, 0x100));
	EXPECT_FALSE(peer_writes(mw + 1, kBase + 0xfff, 1));
	EXPECT_FALSE(peer_writes(mw, kBase + 0x1000, 1));
	/* Anew, to another place; then to none. */
	EXPECT_EQ(post(bind(mw + 2, 0x2000, 0x100, kRemote)), kOk);
	EXPECT_FALSE(peer_writes(mw + 1, kBase + 0x1000, 1));
	EXPECT_TRUE(peer_writes(mw + 2, kBase + 0x2000, 1));
	EXPECT_EQ(post(bind(mw + 3, 0, 0, 0)), kOk);
	EXPECT_FALSE(peer_writes(mw + 3, kBase + 0x2000, 1));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, region_->key), TERN_AQ_OK);
}

/* Rights of the window count, not those of the region. */
TEST_F(LocalWork, WindowRights)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	EXPECT_EQ(post(bind(mw + 1, 0, 0x100, TERN_ACCESS_REMOTE_READ)), kOk);
	EXPECT_FALSE(peer_writes(mw + 1, kBase, 1));
}

/* A key of peers is nothing to use in a work request of our own. */
TEST_F(LocalWork, WindowIsNoLkey)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	EXPECT_EQ(post(bind(mw + 1, 0, 0x100, kRemote)), kOk);
	EXPECT_EQ(post({.sges = {Sge{kBase, 8, mw + 1}}}),
	          (Statuses{TERN_WC_LOC_PROT_ERR, TERN_WC_WR_FLUSH_ERR}));
}

TEST_F(LocalWork, Window2)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_2, 1);
	EXPECT_EQ(post(bind(mw + 4, 0x1000, 0x100, kRemote)), kOk);
	EXPECT_TRUE(peer_writes(mw + 4, kBase + 0x1000, 8));
	EXPECT_EQ(post(invalidate(mw + 4)), kOk);
	EXPECT_FALSE(peer_writes(mw + 4, kBase + 0x1000, 8));
	EXPECT_EQ(post(bind(mw + 5, 0x1000, 0x100, kRemote)), kOk);
	/* It is bound already. */
	EXPECT_EQ(post(bind(mw + 6, 0x1000, 0x100, kRemote)), kBindError);
}

TEST_F(LocalWork, ZeroBased)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_2, 1);
	EXPECT_EQ(post(bind(mw, 0x1000, 0x100, kRemote | TERN_ACCESS_ZERO_BASED)), kOk);
	EXPECT_TRUE(peer_writes(mw, 0xff, 1));
	EXPECT_EQ(region_->read(0x10ff, 1), std::vector<std::byte>(1, std::byte{0x77}));
	EXPECT_FALSE(peer_writes(mw, 0x100, 1));
	EXPECT_FALSE(peer_writes(mw, kBase + 0x1000, 1));
}

/* Type 2B belongs to the QP through which it was bound, and ends with it. */
TEST_F(LocalWork, Window2IsOfItsQp)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_2, 1);
	auto other = make_qp();
	other->connect(connection());
	other->post_send(bind(mw, 0, 0x100, kRemote));
	run();
	EXPECT_EQ(statuses(), kOk);
	EXPECT_FALSE(peer_writes(mw, kBase, 1));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, region_->key), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_QP, other->number), TERN_AQ_OK);
	EXPECT_EQ(post(bind(mw + 1, 0, 0x100, kRemote)), kOk);
	EXPECT_TRUE(peer_writes(mw + 1, kBase, 1));
}

/* The next connection of the QP inherits nothing. */
TEST_F(LocalWork, ResetFreesItsWindows)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_2, 1);
	EXPECT_EQ(post(bind(mw, 0, 0x100, kRemote)), kOk);
	EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
	qp_->forget();
	qp_->connect(connection());
	EXPECT_FALSE(peer_writes(mw, kBase, 1));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, region_->key), TERN_AQ_OK);
}

TEST_F(LocalWork, BusyWhileBound)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	EXPECT_EQ(post(bind(mw + 1, 0, 0x100, kRemote)), kOk);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, region_->key), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, mw + 1), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_MW, region_->key), TERN_AQ_BAD_OBJECT);
	/* By the index alone. */
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_MW, mw), TERN_AQ_OK);
	EXPECT_FALSE(peer_writes(mw + 1, kBase, 1));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, region_->key), TERN_AQ_OK);
}

struct BadBind {
	const char *name;
	tern_hw_mw_type type;
	std::function<void(tern_hw_bind_seg &)> spoil;
};

class LocalWorkBadBind : public LocalWork, public ::testing::WithParamInterface<BadBind> {};

/* The QP learns of it, and nothing was bound. */
TEST_P(LocalWorkBadBind, IsABindError)
{
	const uint32_t mw = driver_.alloc_mw(pd_, GetParam().type, 1);
	SendRequest r = bind(mw, 0, 0x100, kRemote);
	GetParam().spoil(*r.bind);
	EXPECT_EQ(post(r), (Statuses{TERN_WC_MW_BIND_ERR, TERN_WC_WR_FLUSH_ERR}));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, region_->key), TERN_AQ_OK);
}

INSTANTIATE_TEST_SUITE_P(
        All, LocalWorkBadBind,
        ::testing::Values(
                BadBind{"NoWindow", TERN_MW_TYPE_1, [](auto &b) { b.rkey = 0xffff00u; }},
                BadBind{"NoRegion", TERN_MW_TYPE_1, [](auto &b) { b.lkey = b.lkey.get() ^ 1; }},
                BadBind{"WindowAsRegion", TERN_MW_TYPE_1, [](auto &b) { b.lkey = b.rkey.get(); }},
                BadBind{"LocalDma", TERN_MW_TYPE_1,
                        [](auto &b) { b.lkey = uint32_t{TERN_LKEY_LOCAL_DMA}; }},
                BadBind{"BeforeTheRegion", TERN_MW_TYPE_1,
                        [](auto &b) { b.addr = b.addr.get() - 1; }},
                BadBind{"PastTheRegion", TERN_MW_TYPE_1,
                        [](auto &b) { b.length = uint64_t{0x4001}; }},
                BadBind{"Wraps", TERN_MW_TYPE_1, [](auto &b) { b.length = UINT64_MAX; }},
                BadBind{"LocalRight", TERN_MW_TYPE_1,
                        [](auto &b) { b.access = TERN_ACCESS_LOCAL_WRITE; }},
                BadBind{"ZeroBasedOfType1", TERN_MW_TYPE_1,
                        [](auto &b) { b.access = TERN_ACCESS_ZERO_BASED; }},
                BadBind{"EmptyOfType2", TERN_MW_TYPE_2, [](auto &b) { b.length = uint64_t{0}; }}),
        [](const auto &info) { return info.param.name; });

/* The region does not let windows be bound, or not with that right. */
TEST_F(LocalWork, RegionWithoutTheRight)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	auto r = bind(mw, 0, 8, kRemote);
	const HostMr plain = driver_.create_mr(pd_, kBase, 8, kAllAccess);
	r.bind->lkey = plain.key;
	EXPECT_EQ(post(r).front(), TERN_WC_MW_BIND_ERR);
}

TEST_F(LocalWork, WriteRightNeedsLocalWrite)
{
	const HostMr read_only =
	        driver_.create_mr(pd_, kBase, 8, TERN_ACCESS_REMOTE_READ | TERN_ACCESS_MW_BIND);
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	auto r = bind(mw, 0, 8, TERN_ACCESS_REMOTE_READ);
	r.bind->lkey = read_only.key;
	EXPECT_EQ(post(r), kOk);
	r.bind->access = TERN_ACCESS_REMOTE_ATOMIC;
	EXPECT_EQ(post(r).front(), TERN_WC_MW_BIND_ERR);
}

TEST_F(LocalWork, OtherDomain)
{
	const uint32_t pd = driver_.alloc_pd();
	EXPECT_EQ(post(bind(driver_.alloc_mw(pd, TERN_MW_TYPE_1, 1), 0, 8, kRemote)).front(),
	          TERN_WC_MW_BIND_ERR);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, pd), TERN_AQ_BUSY);
}

TEST_F(LocalWork, AllocMwCommand)
{
	auto c = make_command(TERN_AQ_ALLOC_MW);
	c.alloc_mw.pdn = pd_;
	for (const int type : {0, 3}) {
		c.alloc_mw.type = static_cast<uint8_t>(type);
		EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	}
	c.alloc_mw.type = TERN_MW_TYPE_2;
	c.alloc_mw.variant = 0x42;
	EXPECT_EQ(driver_.command(c).created.id.get() & 0xff, 0x42u);
	c.alloc_mw.rsvd[0] = 1;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_FIELD);
	c.alloc_mw.rsvd[0] = 0;
	c.alloc_mw.pdn = 99u;
	EXPECT_EQ(driver_.status_of(c), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(driver_.destroy(TERN_AQ_CREATE_FAST_MR, 99), TERN_AQ_BAD_OBJECT);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_MW, 0xffff00), TERN_AQ_BAD_OBJECT);
}

/* ---- fast registration ---- */

TEST_F(LocalWork, FastRegistration)
{
	const uint32_t key = driver_.create_fast_mr(pd_) | 7;
	EXPECT_FALSE(peer_writes(key, 0x5000, 1));
	EXPECT_EQ(post(reg(key, 0x5000, 0x100, kAllAccess)), kOk);
	EXPECT_TRUE(peer_writes(key, 0x5000, 0x100));
	EXPECT_EQ(region_->read(0, 0x100), std::vector<std::byte>(0x100, std::byte{0x77}));
	EXPECT_FALSE(peer_writes(key, 0x5001, 0x100));
	EXPECT_FALSE(peer_writes(key ^ 1, 0x5000, 1));
	/* For our own work requests too. */
	EXPECT_EQ(post({.sges = {Sge{0x5000, 16, key}}}), Statuses{});
	ack(0);
	EXPECT_EQ(statuses(), kOk);
	EXPECT_EQ(post(invalidate(key)), kOk);
	EXPECT_FALSE(peer_writes(key, 0x5000, 1));
	EXPECT_EQ(post(reg(key ^ 1, 0x6000, 0x100, kAllAccess)), kOk);
	EXPECT_TRUE(peer_writes(key ^ 1, 0x6000, 1));
	/* By the index alone: the driver does not know the variant. */
	EXPECT_EQ(driver_.destroy(TERN_AQ_DESTROY_MR, key & ~0xffu), TERN_AQ_OK);
	EXPECT_FALSE(peer_writes(key ^ 1, 0x6000, 1));
}

/* A page list that was changed between two registrations is read anew. */
TEST_F(LocalWork, FastRegistrationReadsItsTablesAnew)
{
	const uint32_t key = driver_.create_fast_mr(pd_);
	PageTables tables(host_.memory, 1);
	const Iova pages[] = {host_.memory.alloc(4096, 4096), host_.memory.alloc(4096, 4096)};
	for (const Iova page : pages) {
		tables.set(0, page);
		auto r = reg(key, 0, 4096, kAllAccess);
		r.reg->pages = tables.pages();
		EXPECT_EQ(post(r), kOk);
		EXPECT_TRUE(peer_writes(key, 0, 1));
		EXPECT_EQ(post(invalidate(key)), kOk);
	}
	for (const Iova page : pages)
		EXPECT_EQ(host_.memory.get<uint8_t>(page), 0x77);
}

/* It is registered already; of another kind; with bad rights; with a bad page list. */
TEST_F(LocalWork, BadRegistration)
{
	const uint32_t key = driver_.create_fast_mr(pd_);
	const auto refused = [&](const SendRequest &r) {
		const bool is = post(r).front() == TERN_WC_MW_BIND_ERR;
		EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
		qp_->forget();
		qp_->connect(connection());
		return is;
	};
	EXPECT_TRUE(refused(reg(region_->key, 0, 8, kAllAccess)));
	EXPECT_TRUE(refused(reg(key, 0, 8, TERN_ACCESS_REMOTE_WRITE)));
	EXPECT_TRUE(refused(reg(key, 0, 8, 0x80)));
	EXPECT_TRUE(refused(reg(key, UINT64_MAX, 8, 0)));
	auto r = reg(key, 0, 8, 0);
	r.reg->pages.levels = 9;
	EXPECT_TRUE(refused(r));
	EXPECT_EQ(post(reg(key, 0, 8, 0)), kOk);
	EXPECT_TRUE(refused(reg(key, 0, 8, 0)));
}

/* A page list has IOVAs: not for processes. */
TEST_F(LocalWork, RegistrationIsTheKernels)
{
	qp_ = driver_.create_qp(
	        {.pd = pd_, .send_cqn = cq_->number, .recv_cqn = cq_->number, .db_page = 1});
	qp_->connect(connection());
	EXPECT_EQ(post(reg(driver_.create_fast_mr(pd_), 0, 8, 0)),
	          (Statuses{TERN_WC_LOC_QP_OP_ERR}));
}

/* What is not registered by work requests is not invalidated so; nor what is free. */
TEST_F(LocalWork, BadInvalidation)
{
	const auto refused = [&](uint32_t key) {
		const bool is = post(invalidate(key)).front() == TERN_WC_MW_BIND_ERR;
		EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
		qp_->forget();
		qp_->connect(connection());
		return is;
	};
	EXPECT_TRUE(refused(region_->key));
	EXPECT_TRUE(refused(0xffff00));
	EXPECT_TRUE(refused(driver_.create_fast_mr(pd_)));
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 0);
	EXPECT_EQ(post(bind(mw, 0, 8, kRemote)), kOk);
	EXPECT_TRUE(refused(mw));
}

TEST_F(LocalWork, MalformedWqes)
{
	const auto refused = [&](const SendRequest &r, size_t at, uint8_t value) {
		auto blocks = encode(r);
		blocks[at] = static_cast<std::byte>(value);
		qp_->post_blocks(blocks);
		run();
		const bool is = statuses().front() == TERN_WC_LOC_QP_OP_ERR;
		EXPECT_EQ(qp_->set_state(TERN_QPS_RESET), TERN_AQ_OK);
		qp_->forget();
		qp_->connect(connection());
		return is;
	};
	const auto b = bind(1, 0, 8, kRemote);
	EXPECT_TRUE(refused(b, 2, 2)); /* half a segment */
	EXPECT_TRUE(refused(b, 2, 4)); /* one too many */
	EXPECT_TRUE(refused(b, 1, TERN_WQE_SOLICITED));
	EXPECT_TRUE(refused(b, 16 + 25, 1)); /* reserved */
	EXPECT_TRUE(refused(reg(1, 0, 8, 0), 16 + 37, 1));
	EXPECT_TRUE(refused(invalidate(1), 2, 2));
	EXPECT_TRUE(refused(invalidate(1), 12, 1)); /* srqn */
}

/* ---- order ---- */

/* An invalidation waits until nothing before it can be sent again; what follows waits for it. A
 * registration does not wait. */
TEST_F(LocalWork, InvalidationWaits)
{
	const uint32_t key = driver_.create_fast_mr(pd_);
	EXPECT_EQ(post(reg(key, 0x5000, 0x1000, kAllAccess)), kOk);
	qp_->post_send({.sges = {Sge{0x5000, 300, key}}});
	qp_->post_send(invalidate(key));
	qp_->post_send(reg(key + 1, 0x9000, 0x1000, kAllAccess));
	qp_->post_send({.sges = {Sge{0x9000, 100, key + 1}}});
	run();
	EXPECT_EQ(all_sent().size(), 2u);
	EXPECT_EQ(statuses(), Statuses{});
	/* Lost: sent again from the region that is still there. */
	TestPacket nak{.psn = kSqPsn};
	nak.ext.aeth = {nak_syndrome(NakCode::PsnSequenceError), 0};
	give(nak);
	EXPECT_EQ(all_sent().size(), 2u);
	ack(1);
	EXPECT_EQ(statuses(), (Statuses{TERN_WC_SUCCESS, TERN_WC_SUCCESS, TERN_WC_SUCCESS}));
	EXPECT_EQ(all_sent().size(), 1u);
	ack(2);
	EXPECT_EQ(statuses(), kOk);
}

/* Without FENCE a bind takes effect at once, and completes in order; with FENCE it waits. */
TEST_F(LocalWork, Fence)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	EXPECT_EQ(post(send()), Statuses{});
	EXPECT_EQ(post(bind(mw + 1, 0, 0x100, kRemote)), Statuses{});
	auto fenced = bind(mw + 2, 0, 0x100, kRemote);
	fenced.flags |= TERN_WQE_FENCE;
	EXPECT_EQ(post(fenced), Statuses{});
	EXPECT_TRUE(peer_writes(mw + 1, kBase, 1));
	ack(0);
	EXPECT_EQ(statuses(), (Statuses{TERN_WC_SUCCESS, TERN_WC_SUCCESS, TERN_WC_SUCCESS}));
	EXPECT_TRUE(peer_writes(mw + 2, kBase, 1));
}

/* Retransmission goes around local operations in the middle. */
TEST_F(LocalWork, BetweenSendsUnderLoss)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	for (uint8_t i = 1; i <= 3; i++) {
		qp_->post_send(send());
		qp_->post_send(bind(mw + i, 0, 0x100, kRemote));
	}
	run();
	EXPECT_EQ(all_sent().size(), 3u);
	pass(5'000'000);
	const auto again = all_sent();
	ASSERT_GE(again.size(), 3u);
	EXPECT_EQ(again[0].psn, kSqPsn);
	EXPECT_EQ(again[2].psn, psn_after(kSqPsn, 2));
	ack(0);
	EXPECT_EQ(statuses().size(), 2u);
	ack(2);
	EXPECT_EQ(statuses().size(), 4u);
	EXPECT_TRUE(peer_writes(mw + 3, kBase, 1));
}

/* A failure is told in its turn, and what comes after is flushed. */
/* What is more than can be outstanding waits, and all complete in order. */
TEST_F(LocalWork, ManyBehindAnUnansweredSend)
{
	cq_ = driver_.create_cq(*eq_, 12);
	qp_ = make_qp(12);
	qp_->connect(connection());
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	constexpr uint32_t kBinds = 3000;
	qp_->post_send(send());
	for (uint32_t i = 0; i < kBinds; i++)
		qp_->post_send(bind(mw, 0, 1 + i % 7, kRemote));
	qp_->post_send(send());
	run();
	EXPECT_EQ(all_sent().size(), 1u);
	EXPECT_TRUE(cq_->drain().empty());
	ack(0);
	EXPECT_EQ(all_sent().size(), 1u);
	ack(1);
	uint32_t next = 0;
	for (const auto &cqe : cq_->drain()) {
		EXPECT_EQ(cqe.status, TERN_WC_SUCCESS);
		EXPECT_EQ(cqe.wqe_index.get(), next++);
	}
	EXPECT_EQ(next, kBinds + 2);
}

/* A bind without a CQE that was executed is not flushed; one with a CQE is. */
TEST_F(LocalWork, ErrorBehindAnUnansweredSend)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	qp_->post_send(send());
	auto silent = bind(mw, 0, 1, kRemote);
	silent.flags = 0;
	qp_->post_send(silent);
	qp_->post_send(bind(mw, 0, 1, kRemote));
	run();
	EXPECT_EQ(qp_->set_state(TERN_QPS_ERR), TERN_AQ_OK);
	std::vector<uint32_t> flushed;
	for (const auto &cqe : cq_->drain())
		if (cqe.opcode != TERN_CQE_RECV)
			flushed.push_back(cqe.wqe_index.get());
	EXPECT_EQ(flushed, (std::vector<uint32_t>{0, 2}));
}

TEST_F(LocalWork, FailureInOrder)
{
	qp_->post_send(send());
	qp_->post_send(bind(0xffff00, 0, 8, 0));
	qp_->post_send(send());
	run();
	EXPECT_EQ(all_sent().size(), 1u);
	EXPECT_EQ(statuses(), Statuses{});
	ack(0);
	EXPECT_EQ(statuses(), (Statuses{TERN_WC_SUCCESS, TERN_WC_MW_BIND_ERR, TERN_WC_WR_FLUSH_ERR,
	                                TERN_WC_WR_FLUSH_ERR}));
}

/* ---- SEND with invalidate ---- */

TEST_F(LocalWork, RequesterSendsTheKey)
{
	EXPECT_EQ(post({.opcode = TERN_OP_SEND_INV, .imm = 0xaabbcc, .sges = {mr_->sge(0, 300)}}),
	          Statuses{});
	EXPECT_EQ(post({.opcode = TERN_OP_SEND_INV, .imm = 0x112233, .sges = {mr_->sge(0, 1)}}),
	          Statuses{});
	const auto packets = all_sent();
	ASSERT_EQ(packets.size(), 3u);
	EXPECT_EQ(packets[0].opcode, Opcode::RcSendFirst);
	EXPECT_EQ(packets[1].opcode, Opcode::RcSendLastInv);
	EXPECT_EQ(packets[1].ext.inv_rkey, 0xaabbccu);
	EXPECT_EQ(packets[2].opcode, Opcode::RcSendOnlyInv);
	EXPECT_EQ(packets[2].ext.inv_rkey, 0x112233u);
	ack(2);
	EXPECT_EQ(statuses().size(), 2u);
}

TEST_F(LocalWork, ResponderInvalidatesOnce)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_2, 1);
	EXPECT_EQ(post(bind(mw, 0, 0x100, kRemote)), kOk);
	TestPacket p{.opcode = Opcode::RcSendOnlyInv, .psn = kRqPsn, .ack_request = true};
	p.payload.resize(5);
	p.ext.inv_rkey = mw;
	give(p);
	EXPECT_EQ(sent()->ext.aeth.syndrome & kAethKindMask, kAethAck);
	const auto cqe = cq_->poll();
	ASSERT_TRUE(cqe);
	EXPECT_EQ(cqe->flags, TERN_CQE_INV);
	EXPECT_EQ(cqe->imm.get(), mw);
	EXPECT_EQ(stat(TERN_STAT_RESP_INVALIDATES), 1u);
	/* Bound anew with the same key: the duplicate does not take that back. */
	EXPECT_EQ(post(bind(mw, 0, 0x100, kRemote)), kOk);
	give(p);
	expected_ = 1;
	EXPECT_TRUE(peer_writes(mw, kBase, 1));
	EXPECT_EQ(stat(TERN_STAT_RESP_INVALIDATES), 1u);
}

/* A key that a peer may not take back: the message fails on both sides. */
TEST_F(LocalWork, ResponderRefusesTheKey)
{
	TestPacket p{.opcode = Opcode::RcSendOnlyInv, .psn = kRqPsn, .ack_request = true};
	p.ext.inv_rkey = region_->key;
	give(p);
	EXPECT_EQ(sent()->ext.aeth.syndrome, kAccessNak);
	EXPECT_EQ(statuses(), (Statuses{TERN_WC_LOC_ACCESS_ERR}));
	EXPECT_EQ(qp_state(), TERN_QPS_ERR);
}

/* Only what peers may reach at all. */
TEST_F(LocalWork, ResponderKeepsLocalRegions)
{
	const uint32_t key = driver_.create_fast_mr(pd_);
	EXPECT_EQ(post(reg(key, 0, 8, TERN_ACCESS_LOCAL_WRITE)), kOk);
	TestPacket p{.opcode = Opcode::RcSendOnlyInv, .psn = kRqPsn, .ack_request = true};
	p.ext.inv_rkey = key;
	give(p);
	EXPECT_EQ(sent()->ext.aeth.syndrome, kAccessNak);
}

/* A window that goes in the middle of a WRITE through it: the rest is refused. */
TEST_F(LocalWork, WindowGoesUnderAWrite)
{
	const uint32_t mw = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	EXPECT_EQ(post(bind(mw, 0, 0x1000, kRemote)), kOk);
	TestPacket p{.opcode = Opcode::RcWriteFirst, .psn = kRqPsn, .ack_request = true};
	p.payload.resize(kMtu);
	p.ext.reth = {kBase, mw, 2 * kMtu};
	give(p);
	all_sent();
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_MW, mw), TERN_AQ_OK);
	p.opcode = Opcode::RcWriteLast;
	p.psn = psn_after(kRqPsn, 1);
	give(p);
	EXPECT_EQ(sent()->ext.aeth.syndrome, kAccessNak);
}

} // namespace
} // namespace tern::test
