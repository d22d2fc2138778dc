// SPDX-License-Identifier: GPL-2.0-or-later
/* CREATE_MR in its kinds, and MODIFY_MR. */
#include "tests/support/one_card.h"

namespace tern::test {
namespace {

using namespace hw;

constexpr uint64_t kDmSize = 64 << 10;

struct WithDeviceMemory {
	alignas(4096) std::array<std::byte, kDmSize> dm_{};
};

class MemoryCommands : protected WithDeviceMemory, public OneCard {
protected:
	MemoryCommands() : OneCard({.mac = kCardMac, .device_memory = dm_}) {}
	void SetUp() override
	{
		set_up_card();
		qp_ = make_qp();
		qp_->connect(connection());
	}

	tern_hw_create_mr device_mr(uint64_t offset, uint64_t length) const
	{
		tern_hw_create_mr mr{};
		mr.length = length;
		mr.pages.iova = offset;
		mr.pdn = pd_;
		mr.access = kAllAccess;
		mr.variant = 0x42;
		mr.flags = TERN_MR_DEVICE;
		return mr;
	}
	tern_hw_aq_cqe create(const tern_hw_create_mr &mr)
	{
		auto c = make_command(TERN_AQ_CREATE_MR);
		c.create_mr = mr;
		return driver_.command(c);
	}
	tern_hw_aq_status status_of(const tern_hw_create_mr &mr)
	{
		return static_cast<tern_hw_aq_status>(create(mr).status);
	}

	/** A MODIFY_MR of mr_ that names nothing yet. */
	tern_hw_modify_mr change(uint8_t mask) const
	{
		tern_hw_modify_mr m{};
		m.key = mr_->key;
		m.mask = mask;
		return m;
	}
	tern_hw_aq_status modify(const tern_hw_modify_mr &m)
	{
		auto c = make_command(TERN_AQ_MODIFY_MR);
		c.modify_mr = m;
		return driver_.status_of(c);
	}

	/** Whether the peer may WRITE @value to @va; if not, it connects anew. */
	bool writes(uint32_t rkey, uint64_t va, std::byte value = std::byte{0x5a})
	{
		TestPacket p;
		p.opcode = Opcode::RcWriteOnly;
		p.psn = psn_;
		p.ack_request = true;
		p.ext.reth.va = va;
		p.ext.reth.rkey = rkey;
		p.ext.reth.length = 1;
		p.payload = {value};
		give(p);
		psn_ = psn_after(psn_, 1);
		const auto answer = sent();
		if (answer && (answer->ext.aeth.syndrome & kAethKindMask) == kAethAck)
			return true;
		qp_->set_state(TERN_QPS_RESET);
		qp_->forget();
		qp_->connect(connection());
		psn_ = kRqPsn;
		return false;
	}

	uint32_t psn_ = kRqPsn;
};

TEST_F(MemoryCommands, TheRegistersTellOfDeviceMemory)
{
	EXPECT_EQ(card_.read_register(TERN_REG_DM_SIZE), kDmSize);
	EXPECT_TRUE(card_.read_register(TERN_REG_CAPS) & TERN_CAP_DM);
	FakeHost host;
	const Rnic without({.mac = kCardMac}, host.ports());
	EXPECT_EQ(without.read_register(TERN_REG_DM_SIZE), 0u);
	EXPECT_FALSE(without.read_register(TERN_REG_CAPS) & TERN_CAP_DM);
}

TEST_F(MemoryCommands, DeviceRegionsStayInTheDeviceMemory)
{
	EXPECT_EQ(status_of(device_mr(0, kDmSize)), TERN_AQ_OK);
	EXPECT_EQ(status_of(device_mr(kDmSize - 1, 1)), TERN_AQ_OK);
	EXPECT_EQ(status_of(device_mr(0, kDmSize + 1)), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(status_of(device_mr(kDmSize, 1)), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(status_of(device_mr(UINT64_MAX, 2)), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(status_of(device_mr(2, UINT64_MAX)), TERN_AQ_BAD_FIELD);
}

TEST_F(MemoryCommands, DeviceRegionsHaveNoTables)
{
	auto mr = device_mr(0, 4096);
	mr.pages.levels = 1;
	mr.pages.page_shift = 12;
	EXPECT_EQ(status_of(mr), TERN_AQ_BAD_FIELD);
}

TEST_F(MemoryCommands, UnknownFlags)
{
	auto mr = device_mr(0, 4096);
	mr.flags = 0x80;
	EXPECT_EQ(status_of(mr), TERN_AQ_BAD_FIELD);
}

TEST_F(MemoryCommands, APeerReachesDeviceMemory)
{
	const auto created = create(device_mr(8192, 4096));
	ASSERT_EQ(created.status, TERN_AQ_OK);
	EXPECT_TRUE(writes(created.created.id.get(), 5, std::byte{0x77}));
	EXPECT_EQ(dm_[8192 + 5], std::byte{0x77});
	EXPECT_FALSE(writes(created.created.id.get(), 4096));
}

TEST_F(MemoryCommands, AResetLeavesDeviceMemoryAlone)
{
	dm_[100] = std::byte{9};
	card_.reset();
	EXPECT_EQ(dm_[100], std::byte{9});
}

TEST_F(MemoryCommands, ZeroBased)
{
	tern_hw_create_mr mr{};
	const Iova page = host_.memory.alloc(4096, 4096);
	PageTables tables(host_.memory, 1, 12);
	tables.set(0, page);
	mr.start = uint64_t{0x7f0000001010};
	mr.length = uint64_t{256};
	mr.pages = tables.pages();
	mr.pdn = pd_;
	mr.access = kAllAccess | TERN_ACCESS_ZERO_BASED;
	const auto created = create(mr);
	ASSERT_EQ(created.status, TERN_AQ_OK);
	EXPECT_TRUE(writes(created.created.id.get(), 255, std::byte{0x33}));
	EXPECT_EQ(host_.memory.bytes(page + 0x10 + 255, 1)[0], std::byte{0x33});
	EXPECT_FALSE(writes(created.created.id.get(), 256));
	EXPECT_FALSE(writes(created.created.id.get(), mr.start.get()));
}

TEST_F(MemoryCommands, ModifyAccess)
{
	ASSERT_TRUE(writes(mr_->key, kVa));
	auto m = change(TERN_MODIFY_MR_ACCESS);
	m.to.access = TERN_ACCESS_LOCAL_WRITE;
	EXPECT_EQ(modify(m), TERN_AQ_OK);
	EXPECT_FALSE(writes(mr_->key, kVa));
	m.to.access = kAllAccess;
	EXPECT_EQ(modify(m), TERN_AQ_OK);
	EXPECT_TRUE(writes(mr_->key, kVa));
}

TEST_F(MemoryCommands, ModifyPd)
{
	const uint32_t other = driver_.alloc_pd();
	auto m = change(TERN_MODIFY_MR_PD);
	m.to.pdn = other;
	EXPECT_EQ(modify(m), TERN_AQ_OK);
	EXPECT_FALSE(writes(mr_->key, kVa));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, other), TERN_AQ_BUSY);
	m.to.pdn = pd_;
	EXPECT_EQ(modify(m), TERN_AQ_OK);
	EXPECT_TRUE(writes(mr_->key, kVa));
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_PD, other), TERN_AQ_OK);
}

TEST_F(MemoryCommands, ModifyTranslation)
{
	ASSERT_TRUE(writes(mr_->key, kVa)); /* the old tables are cached */
	const Buffer buffer(host_.memory, 8192, 1, 12);
	auto m = change(TERN_MODIFY_MR_TRANSLATION);
	m.to.start = uint64_t{0x5000};
	m.to.length = uint64_t{8192};
	m.to.pages = buffer.pages();
	EXPECT_EQ(modify(m), TERN_AQ_OK);
	EXPECT_FALSE(writes(mr_->key, kVa));
	EXPECT_TRUE(writes(mr_->key, 0x5000 + 8191, std::byte{0x44}));
	EXPECT_EQ(buffer.read(8191, 1)[0], std::byte{0x44});
	EXPECT_FALSE(writes(mr_->key, 0x5000 + 8192));
}

TEST_F(MemoryCommands, ModifyAllAtOnceOrNothing)
{
	const Buffer buffer(host_.memory, 8192, 1, 12);
	auto m = change(TERN_MODIFY_MR_PD | TERN_MODIFY_MR_ACCESS | TERN_MODIFY_MR_TRANSLATION);
	m.to.pdn = pd_;
	m.to.access = TERN_ACCESS_LOCAL_WRITE;
	m.to.start = UINT64_MAX - 100;
	m.to.length = uint64_t{8192};
	m.to.pages = buffer.pages();
	EXPECT_EQ(modify(m), TERN_AQ_BAD_FIELD);
	EXPECT_TRUE(writes(mr_->key, kVa));
	m.to.start = uint64_t{0x5000};
	m.to.pdn = 99u;
	EXPECT_EQ(modify(m), TERN_AQ_BAD_OBJECT);
	EXPECT_TRUE(writes(mr_->key, kVa));
	m.to.pdn = pd_;
	EXPECT_EQ(modify(m), TERN_AQ_OK);
	EXPECT_FALSE(writes(mr_->key, 0x5000));
}

TEST_F(MemoryCommands, ModifyRefuses)
{
	EXPECT_EQ(modify(change(0)), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(modify(change(8)), TERN_AQ_BAD_FIELD);
	const auto with = [&](auto spoil) {
		auto m = change(TERN_MODIFY_MR_ACCESS);
		m.to.access = kAllAccess;
		spoil(m);
		return modify(m);
	};
	EXPECT_EQ(with([](auto &) {}), TERN_AQ_OK);
	EXPECT_EQ(with([](auto &m) { m.rsvd[1] = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with([](auto &m) { m.to.rsvd = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with([](auto &m) { m.to.variant = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with([](auto &m) { m.to.flags = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with([](auto &m) { m.to.pdn = 1u; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with([](auto &m) { m.to.start = uint64_t{1}; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with([](auto &m) { m.to.length = uint64_t{1}; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with([](auto &m) { m.to.pages.levels = 1; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with([](auto &m) { m.to.access = TERN_ACCESS_REMOTE_WRITE; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with([](auto &m) { m.to.access |= TERN_ACCESS_ZERO_BASED; }), TERN_AQ_BAD_FIELD);
	EXPECT_EQ(with([](auto &m) { m.key = m.key.get() ^ 1; }), TERN_AQ_BAD_OBJECT);
	const auto dm = create(device_mr(0, 64));
	EXPECT_EQ(with([&](auto &m) { m.key = dm.created.id; }), TERN_AQ_BAD_OBJECT);
	const uint32_t fast = driver_.create_fast_mr(pd_);
	EXPECT_EQ(with([&](auto &m) { m.key = fast; }), TERN_AQ_BAD_OBJECT);
	const uint32_t window = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	EXPECT_EQ(with([&](auto &m) { m.key = window; }), TERN_AQ_BAD_OBJECT);
}

TEST_F(MemoryCommands, ModifyIsRefusedWhileAWindowIsBound)
{
	auto m = change(TERN_MODIFY_MR_ACCESS);
	m.to.access = kAllAccess | TERN_ACCESS_MW_BIND;
	ASSERT_EQ(modify(m), TERN_AQ_OK);
	const uint32_t window = driver_.alloc_mw(pd_, TERN_MW_TYPE_1, 1);
	SendRequest bind{.opcode = TERN_OP_BIND_MW};
	bind.bind.emplace();
	bind.bind->addr = kVa;
	bind.bind->length = uint64_t{64};
	bind.bind->rkey = window + 1;
	bind.bind->lkey = mr_->key;
	bind.bind->access = TERN_ACCESS_REMOTE_READ;
	qp_->post_send(bind);
	run();
	const auto cqe = cq_->poll();
	ASSERT_TRUE(cqe && cqe->status == TERN_WC_SUCCESS);
	EXPECT_EQ(modify(m), TERN_AQ_BUSY);
	EXPECT_EQ(driver_.destroy(TERN_AQ_DEALLOC_MW, window), TERN_AQ_OK);
	EXPECT_EQ(modify(m), TERN_AQ_OK);
}

} // namespace
} // namespace tern::test
