// SPDX-License-Identifier: GPL-2.0-or-later
#include "datapath/send_queue.h"

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "datapath/probes.h"
#include "queue_fixture.h"

namespace tern::provider::test {

class SendQueueTest : public QueueFixture {
protected:
	static SendRequest request(tern_hw_wqe_op op, uint64_t wr_id = 0)
	{
		SendRequest r;
		r.op = op;
		r.wr_id = wr_id;
		r.imm = 0xaabbccdd;
		r.rkey = 0x31323334;
		r.remote_addr = 0x4142434445464748;
		r.swap_add = 0x5152535455565758;
		r.compare = 0x6162636465666768;
		return r;
	}

	/* A queue of @service in the ring. */
	void make_sq_of(SendQueue &sq, Service service, uint32_t blocks = 8)
	{
		SendQueue::Config config = sq_config(blocks);
		config.service = service;
		config.ops = send_ops_of(service, kAllCaps);
		ASSERT_EQ(sq.init(config), 0);
	}

	static ibv_sge sge(uint64_t addr = 0x1112131415161718, uint32_t length = 0x21222324,
	                   uint32_t lkey = 0x25262728)
	{
		return {addr, length, lkey};
	}

	static std::vector<ibv_sge> sges(size_t n)
	{
		return std::vector<ibv_sge>(n, sge(0x1000, 8, 0x100));
	}

	static std::vector<uint8_t> counting(size_t n)
	{
		std::vector<uint8_t> data(n);
		std::iota(data.begin(), data.end(), uint8_t{1});
		return data;
	}
};

using Bytes = std::vector<uint8_t>;

const Bytes kDataSegment = {0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
                            0x24, 0x23, 0x22, 0x21, 0x28, 0x27, 0x26, 0x25};
const Bytes kRemoteSegment = {0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41,
                              0x34, 0x33, 0x32, 0x31, 0,    0,    0,    0};

Bytes control(uint8_t opcode, uint8_t flags, uint8_t segs, Bytes imm = {0, 0, 0, 0},
              uint8_t inline_len = 0)
{
	return {opcode,     flags, segs, 0, imm[0], imm[1], imm[2], imm[3],
	        inline_len, 0,     0,    0, 0,      0,      0,      0};
}

Bytes operator+(Bytes a, const Bytes &b)
{
	a.insert(a.end(), b.begin(), b.end());
	return a;
}

TEST_F(SendQueueTest, SendIsControlAndData)
{
	SendQueue sq;
	make_sq(sq, 8);
	const ibv_sge one = sge();
	SendRequest r = request(TERN_OP_SEND);
	r.flags = TERN_WQE_SIGNALED | TERN_WQE_SOLICITED | TERN_WQE_FENCE;

	ASSERT_EQ(sq.build(r, {&one, 1}), 0);
	EXPECT_EQ(bytes(0, 32), control(0x01, 0x07, 2) + kDataSegment);
}

TEST_F(SendQueueTest, ImmediateGoesAsOnTheWire)
{
	SendQueue sq;
	make_sq(sq, 8);
	const ibv_sge one = sge();

	ASSERT_EQ(sq.build(request(TERN_OP_SEND_IMM), {&one, 1}), 0);
	EXPECT_EQ(bytes(0, 32), control(0x02, 0, 2, {0xaa, 0xbb, 0xcc, 0xdd}) + kDataSegment);
	ASSERT_EQ(sq.build(request(TERN_OP_WRITE_IMM), {&one, 1}), 0);
	EXPECT_EQ(bytes(64, 48),
	          control(0x04, 0, 3, {0xaa, 0xbb, 0xcc, 0xdd}) + kRemoteSegment + kDataSegment);
}

TEST_F(SendQueueTest, WriteAndReadNameTheRemoteBuffer)
{
	SendQueue sq;
	make_sq(sq, 8);
	const ibv_sge one = sge();

	ASSERT_EQ(sq.build(request(TERN_OP_WRITE), {&one, 1}), 0);
	EXPECT_EQ(bytes(0, 48), control(0x03, 0, 3) + kRemoteSegment + kDataSegment);
	ASSERT_EQ(sq.build(request(TERN_OP_READ), {&one, 1}), 0);
	EXPECT_EQ(bytes(64, 48), control(0x05, 0, 3) + kRemoteSegment + kDataSegment);
}

TEST_F(SendQueueTest, AtomicsCarryTheirOperands)
{
	SendQueue sq;
	make_sq(sq, 8);
	ibv_sge one = sge();
	one.length = 8;
	Bytes data = kDataSegment;
	std::ranges::copy(Bytes{8, 0, 0, 0}, data.begin() + 8);
	const Bytes swap_add = {0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51};
	const Bytes compare = {0x68, 0x67, 0x66, 0x65, 0x64, 0x63, 0x62, 0x61};

	ASSERT_EQ(sq.build(request(TERN_OP_CMP_SWAP), {&one, 1}), 0);
	EXPECT_EQ(bytes(0, 64), control(0x06, 0, 4) + kRemoteSegment + swap_add + compare + data);
	ASSERT_EQ(sq.build(request(TERN_OP_FETCH_ADD), {&one, 1}), 0);
	EXPECT_EQ(bytes(64, 64),
	          control(0x07, 0, 4) + kRemoteSegment + swap_add + Bytes(8, 0) + data);
}

/* ---- datagrams ------------------------------------------------------------------------ */

tern_hw_ud_seg address()
{
	tern_hw_ud_seg seg = {};
	std::iota(std::begin(seg.dgid), std::end(seg.dgid), uint8_t{0xa0});
	std::iota(std::begin(seg.dmac), std::end(seg.dmac), uint8_t{0xb0});
	seg.sgid_index = 3;
	seg.hop_limit = 64;
	seg.flow_label = 0x12345;
	seg.udp_sport = 0xc0de;
	seg.traffic_class = 0x99;
	seg.sl = 5;
	return seg;
}

const Bytes kDatagramSegment = {0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9,
                                0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 0xb0, 0xb1, 0xb2, 0xb3,
                                0xb4, 0xb5, 3,    64,   0x33, 0x22, 0x11, 0,    0x44, 0x33,
                                0x22, 0x81, 0x45, 0x23, 0x01, 0,    0xde, 0xc0, 0x99, 5,
                                0,    0,    0,    0,    0,    0,    0,    0};

SendRequest datagram(tern_hw_wqe_op op, const tern_hw_ud_seg &to)
{
	SendRequest r;
	r.op = op;
	r.imm = 0xaabbccdd;
	r.address = &to;
	r.dest_qpn = 0xff112233; /* only 24 bits are a QP number */
	r.qkey = 0x81223344;
	return r;
}

TEST_F(SendQueueTest, ADatagramCarriesItsAddress)
{
	SendQueue sq;
	make_sq_of(sq, Service::kUd);
	const ibv_sge one = sge();
	const tern_hw_ud_seg to = address();

	ASSERT_EQ(sq.build(datagram(TERN_OP_SEND, to), {&one, 1}), 0);
	EXPECT_EQ(bytes(0, 80), control(0x01, 0, 5) + kDatagramSegment + kDataSegment);
	ASSERT_EQ(sq.build(datagram(TERN_OP_SEND_IMM, to), {}), 0);
	EXPECT_EQ(bytes(128, 64), control(0x02, 0, 4, {0xaa, 0xbb, 0xcc, 0xdd}) + kDatagramSegment);
}

TEST_F(SendQueueTest, ADatagramCanBeInlineAndGoOverTheEndOfTheRing)
{
	SendQueue sq;
	make_sq_of(sq, Service::kUd, 2);
	const tern_hw_ud_seg to = address();
	auto data = counting(20);
	const ibv_data_buf buf = {data.data(), data.size()};

	ASSERT_EQ(sq.build(datagram(TERN_OP_SEND, to), {}), 0);
	sq.complete(0);
	ASSERT_EQ(sq.build_inline(datagram(TERN_OP_SEND, to), std::span(&buf, 1)), 0);
	EXPECT_EQ(bytes(64, 64),
	          control(0x01, TERN_WQE_INLINE, 6, {0, 0, 0, 0}, 20) + kDatagramSegment);
	EXPECT_EQ(bytes(0, 32), data + Bytes(12, 0));
}

TEST_F(SendQueueTest, ADestinationCanComeAfterTheData)
{
	SendQueue sq;
	make_sq_of(sq, Service::kUd);
	const ibv_sge one = sge();
	const tern_hw_ud_seg to = address();
	SendRequest r;
	r.wr_id = 1;

	ASSERT_EQ(sq.build(r, {}), 0);
	ASSERT_EQ(sq.build(r, {&one, 1}), 0);
	EXPECT_EQ(bytes(64 + 16, 48), Bytes(48, 0));
	sq.set_destination(datagram(TERN_OP_SEND, to));
	EXPECT_EQ(bytes(64, 80), control(0x01, 0, 5) + kDatagramSegment + kDataSegment);
	EXPECT_EQ(bytes(16, 48), Bytes(48, 0)) << "the one before is as it was";
}

/* ---- XRC, windows, invalidation --------------------------------------------------------- */

Bytes with_srqn(Bytes ctrl)
{
	ctrl[12] = 0x66;
	ctrl[13] = 0x55;
	ctrl[14] = 0x44;
	return ctrl;
}

TEST_F(SendQueueTest, AnXrcRequestNamesTheSrq)
{
	SendQueue sq;
	make_sq_of(sq, Service::kXrcSend);
	const ibv_sge one = sge();
	SendRequest r = request(TERN_OP_SEND);
	r.srqn = 0x445566;

	ASSERT_EQ(sq.build(r, {&one, 1}), 0);
	EXPECT_EQ(bytes(0, 32), with_srqn(control(0x01, 0, 2)) + kDataSegment);
	r.op = TERN_OP_READ;
	ASSERT_EQ(sq.build(r, {&one, 1}), 0);
	EXPECT_EQ(bytes(64, 48), with_srqn(control(0x05, 0, 3)) + kRemoteSegment + kDataSegment);

	r.srqn = 0;
	r.op = TERN_OP_SEND;
	ASSERT_EQ(sq.build(r, {&one, 1}), 0);
	EXPECT_EQ(bytes(128, 32), control(0x01, 0, 2) + kDataSegment);
	r.srqn = 0x445566;
	sq.set_destination(r);
	EXPECT_EQ(bytes(128, 32), with_srqn(control(0x01, 0, 2)) + kDataSegment);
}

TEST_F(SendQueueTest, InvalidationsCarryAKey)
{
	SendQueue sq;
	make_sq(sq, 8);
	const ibv_sge one = sge();

	ASSERT_EQ(sq.build(request(TERN_OP_SEND_INV), {&one, 1}), 0);
	EXPECT_EQ(bytes(0, 32), control(0x08, 0, 2, {0xaa, 0xbb, 0xcc, 0xdd}) + kDataSegment);
	SendRequest r = request(TERN_OP_LOCAL_INV);
	r.flags = TERN_WQE_SIGNALED | TERN_WQE_SOLICITED;
	ASSERT_EQ(sq.build(r, {}), 0);
	EXPECT_EQ(bytes(64, 16), control(0x09, TERN_WQE_SIGNALED, 1, {0xaa, 0xbb, 0xcc, 0xdd}));
	EXPECT_EQ(sq.build(r, {&one, 1}), EINVAL) << "there is no data in it";
	EXPECT_EQ(sq.build_inline(r, std::span<const ibv_sge>()), EINVAL);
}

TEST_F(SendQueueTest, ABindNamesWindowAndRegion)
{
	SendQueue sq;
	make_sq(sq, 8);
	SendRequest r = request(TERN_OP_BIND_MW);
	r.bind_length = 0x7172737475767778;
	r.bind_lkey = 0x81828384;
	r.bind_access = TERN_ACCESS_REMOTE_READ | TERN_ACCESS_ZERO_BASED;

	const Bytes expected = {0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41, 0x78, 0x77, 0x76,
	                        0x75, 0x74, 0x73, 0x72, 0x71, 0x34, 0x33, 0x32, 0x31, 0x84, 0x83,
	                        0x82, 0x81, 0x24, 0,    0,    0,    0,    0,    0,    0};

	ASSERT_EQ(sq.build(r, {}), 0);
	EXPECT_EQ(bytes(0, 48), control(0x0a, 0, 3) + expected);
}

TEST_F(SendQueueTest, AServiceTakesOnlyWhatItHas)
{
	const ibv_sge one = sge();
	const std::pair<Service, tern_hw_wqe_op> refused[] = {
	        {Service::kUc, TERN_OP_READ},      {Service::kUc, TERN_OP_CMP_SWAP},
	        {Service::kUc, TERN_OP_SEND_INV},  {Service::kUd, TERN_OP_WRITE},
	        {Service::kRaw, TERN_OP_SEND_IMM}, {Service::kXrcRecv, TERN_OP_SEND},
	};
	for (const auto &[service, op] : refused) {
		SendQueue sq;
		make_sq_of(sq, service);
		EXPECT_EQ(sq.build(request(op), {&one, 1}), EINVAL);
		EXPECT_EQ(sq.build_inline(request(op), std::span<const ibv_sge>()), EINVAL);
	}
	SendQueue raw;
	make_sq_of(raw, Service::kRaw);
	ASSERT_EQ(raw.build(request(TERN_OP_SEND), {&one, 1}), 0);
	EXPECT_EQ(bytes(0, 32), control(0x01, 0, 2) + kDataSegment);
}

/* ---- all services ------------------------------------------------------------------------ */

TEST_F(SendQueueTest, SolicitedOnlyWhereARecvIsConsumed)
{
	SendQueue sq;
	make_sq(sq, 16);
	const ibv_sge one = sge();
	const std::pair<tern_hw_wqe_op, bool> cases[] = {
	        {TERN_OP_SEND, true},      {TERN_OP_SEND_IMM, true}, {TERN_OP_WRITE, false},
	        {TERN_OP_WRITE_IMM, true}, {TERN_OP_READ, false},    {TERN_OP_FETCH_ADD, false},
	};
	size_t block = 0;

	for (const auto &[op, solicited] : cases) {
		SendRequest r = request(op);
		r.flags = TERN_WQE_SOLICITED;
		ASSERT_EQ(sq.build(r, {&one, 1}), 0);
		EXPECT_EQ(segment<tern_hw_ctrl_seg>(4 * block++).flags,
		          solicited ? TERN_WQE_SOLICITED : 0);
	}
}

TEST_F(SendQueueTest, EmptyPiecesTakeNoSegment)
{
	SendQueue sq;
	make_sq(sq, 8);
	const ibv_sge list[] = {sge(1, 0), sge(), sge(2, 0)};

	ASSERT_EQ(sq.build(request(TERN_OP_SEND), list), 0);
	EXPECT_EQ(bytes(0, 32), control(0x01, 0, 2) + kDataSegment);
	ASSERT_EQ(sq.build(request(TERN_OP_SEND), {}), 0);
	EXPECT_EQ(bytes(64, 16), control(0x01, 0, 1));
}

TEST_F(SendQueueTest, InlineDataFollowsAndIsPadded)
{
	SendQueue sq;
	make_sq(sq, 8);
	auto data = counting(21);
	const ibv_sge list[] = {{reinterpret_cast<uint64_t>(data.data()), 5, 0},
	                        {reinterpret_cast<uint64_t>(data.data()) + 5, 16, 0}};

	ASSERT_EQ(sq.build_inline(request(TERN_OP_SEND), list), 0);
	EXPECT_EQ(bytes(0, 48),
	          control(0x01, 0x08, 3, {0, 0, 0, 0}, 21) + data + Bytes(32 - 21, 0));

	const ibv_data_buf buf = {data.data(), 21};
	ASSERT_EQ(sq.build_inline(request(TERN_OP_WRITE), std::span(&buf, 1)), 0);
	EXPECT_EQ(bytes(64, 64), control(0x03, 0x08, 4, {0, 0, 0, 0}, 21) + kRemoteSegment + data +
	                                 Bytes(32 - 21, 0));
}

TEST_F(SendQueueTest, LongWqesTakeSeveralBlocksAndGoOverTheEnd)
{
	SendQueue sq;
	make_sq(sq, 16);
	const auto all = sges(TERN_MAX_SEND_SGE); /* 31 segments, 8 blocks */

	ASSERT_EQ(sq.build(request(TERN_OP_SEND, 1), all), 0);
	ASSERT_EQ(sq.build(request(TERN_OP_SEND, 2), sges(15)), 0); /* blocks 8..11 */
	sq.publish();
	EXPECT_EQ(sq.complete(0), 1u);
	EXPECT_EQ(sq.complete(8), 2u);

	std::vector<ibv_sge> numbered;
	for (uint32_t i = 0; i < TERN_MAX_SEND_SGE; i++)
		numbered.push_back(sge(i, 8, i));
	ASSERT_EQ(sq.build(request(TERN_OP_SEND, 3), numbered), 0); /* blocks 12..15, 0..3 */
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(48).segs, 31);
	for (uint32_t i = 0; i < TERN_MAX_SEND_SGE; i++)
		EXPECT_EQ(segment<tern_hw_data_seg>((49 + i) % 64).addr.get(), i);
	sq.publish();
	EXPECT_EQ(doorbell(TERN_DB_SQ), 0x123456 | uint64_t{20} << 32);
	EXPECT_EQ(sq.complete(12), 3u);
}

TEST_F(SendQueueTest, InlineDataGoesOverTheEnd)
{
	SendQueue sq;
	make_sq(sq, 4);
	ASSERT_EQ(sq.build(request(TERN_OP_SEND), sges(1)), 0);
	ASSERT_EQ(sq.build(request(TERN_OP_SEND), sges(1)), 0);
	ASSERT_EQ(sq.build(request(TERN_OP_SEND), sges(1)), 0);
	sq.publish();
	sq.complete(2);

	auto data = counting(100);
	const ibv_data_buf buf = {data.data(), data.size()};
	ASSERT_EQ(sq.build_inline(request(TERN_OP_SEND), std::span(&buf, 1)), 0);
	const Bytes whole = bytes(192 + 16, 48) + bytes(0, 64);
	EXPECT_EQ(Bytes(whole.begin(), whole.begin() + 100), data);
	EXPECT_EQ(Bytes(whole.begin() + 100, whole.end()), Bytes(12, 0));
}

/* What observers are told of is read back from the ring, over its end, too. */
TEST_F(SendQueueTest, ObserversChangeNothing)
{
	SendQueue sq;
	const std::vector<uint8_t> data = counting(100);
	const std::vector<ibv_sge> pieces = {
	        {reinterpret_cast<uint64_t>(data.data()), static_cast<uint32_t>(data.size()), 0}};

	make_sq(sq, 8);
	tern_post_semaphore = 1;
	tern_doorbell_semaphore = 1;
	for (uint32_t round = 0; round < 20; round++) {
		EXPECT_EQ(sq.build_inline(request(TERN_OP_WRITE, round), pieces), 0);
		EXPECT_EQ(sq.build(request(TERN_OP_WRITE), sges(5)), 0);
		sq.publish();
		EXPECT_EQ(doorbell(TERN_DB_SQ), 0x123456 | uint64_t{5 * round + 5} << 32);
		sq.complete(5 * round + 3);
	}
	tern_post_semaphore = 0;
	tern_doorbell_semaphore = 0;
}

TEST_F(SendQueueTest, LargestInline)
{
	SendQueue sq;
	make_sq(sq, 16);
	auto data = counting(TERN_MAX_INLINE);
	const ibv_data_buf buf = {data.data(), data.size()};

	ASSERT_EQ(sq.build_inline(request(TERN_OP_WRITE_IMM), std::span(&buf, 1)), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).segs, 62);
	EXPECT_EQ(bytes(32, TERN_MAX_INLINE), data);
	/* 62 segments are all 16 blocks: the ring is full now. */
	EXPECT_EQ(sq.build(request(TERN_OP_SEND), {}), ENOMEM);
}

TEST_F(SendQueueTest, FullRingRefusesUntilACompletion)
{
	SendQueue sq;
	make_sq(sq, 4);

	for (uint64_t i = 0; i < 4; i++)
		ASSERT_EQ(sq.build(request(TERN_OP_SEND, i), {}), 0);
	EXPECT_EQ(sq.build(request(TERN_OP_SEND), {}), ENOMEM);
	sq.publish();
	EXPECT_EQ(sq.complete(1), 1u); /* 0 was not signalled: it is done too */
	ASSERT_EQ(sq.build(request(TERN_OP_SEND, 4), {}), 0);
	EXPECT_EQ(sq.build(request(TERN_OP_SEND), sges(7)), ENOMEM) << "two blocks, one is free";
	ASSERT_EQ(sq.build(request(TERN_OP_SEND, 5), {}), 0);
	EXPECT_EQ(sq.build(request(TERN_OP_SEND), {}), ENOMEM);
}

TEST_F(SendQueueTest, IndicesRunOnForever)
{
	SendQueue sq;
	make_sq(sq, 4);

	for (uint32_t i = 0; i < 1000; i++) {
		ASSERT_EQ(sq.build(request(TERN_OP_SEND, i), {}), 0);
		sq.publish();
		EXPECT_EQ(doorbell(TERN_DB_SQ), 0x123456 | uint64_t{i + 1} << 32);
		EXPECT_EQ(sq.complete(i), i);
	}
}

TEST_F(SendQueueTest, OneDoorbellPerListAndNoneForNothing)
{
	SendQueue sq;
	make_sq(sq, 8);

	sq.publish();
	EXPECT_EQ(doorbell(TERN_DB_SQ), kNoDoorbell);
	ASSERT_EQ(sq.build(request(TERN_OP_SEND), {}), 0);
	ASSERT_EQ(sq.build(request(TERN_OP_SEND), {}), 0);
	EXPECT_EQ(doorbell(TERN_DB_SQ), kNoDoorbell);
	sq.publish();
	EXPECT_EQ(doorbell(TERN_DB_SQ), 0x123456 | uint64_t{2} << 32);
}

TEST_F(SendQueueTest, WithoutTheCapabilityTheRecordIsNotTouched)
{
	SendQueue sq;
	make_sq(sq, 8);
	qp_record_.sq_event = 100; /* would say no */

	ASSERT_EQ(sq.build(request(TERN_OP_SEND), {}), 0);
	sq.publish();
	EXPECT_EQ(qp_record_.sq_pi.get(), 0u);
	EXPECT_NE(doorbell(TERN_DB_SQ), kNoDoorbell);
}

TEST_F(SendQueueTest, ShadowDoorbellRingsOnlyWhenAsked)
{
	SendQueue sq;
	make_sq(sq, 8, true);
	auto post = [&](unsigned n) {
		forget_doorbells();
		while (n--)
			ASSERT_EQ(sq.build(request(TERN_OP_SEND), {}), 0);
		sq.publish();
	};

	post(1); /* the card sleeps: its event index is 0 */
	EXPECT_EQ(doorbell(TERN_DB_SQ), 0x123456 | uint64_t{1} << 32);
	post(1); /* it has not gone to sleep since */
	EXPECT_EQ(doorbell(TERN_DB_SQ), kNoDoorbell);
	EXPECT_EQ(qp_record_.sq_pi.get(), 2u);
	qp_record_.sq_event = 2; /* it saw 2 and sleeps */
	post(3);
	EXPECT_EQ(doorbell(TERN_DB_SQ), 0x123456 | uint64_t{5} << 32);
}

/* ---- the number of requests --------------------------------------------------------------- */

/* A ring of 8 blocks for 4 requests, which may have 2 blocks each. */
class SendQueueLimitTest : public SendQueueTest {
protected:
	SendQueueLimitTest()
	{
		SendQueue::Config config = sq_config(8);
		config.max_wr = kMaxWr;
		EXPECT_EQ(sq_.init(config), 0);
	}

	/* Posts requests of @blocks until one is refused. Returns how many were taken. */
	uint32_t fill(uint32_t blocks = 1)
	{
		uint32_t n = 0;
		int err = 0;
		while (!(err = sq_.build(request(TERN_OP_SEND), sges(4 * blocks - 1))))
			n++;
		EXPECT_EQ(err, ENOMEM);
		sq_.publish();
		return n;
	}

	static constexpr uint32_t kMaxWr = 4;
	SendQueue sq_;
};

TEST_F(SendQueueLimitTest, SmallRequestsAreNotMoreThanGranted)
{
	EXPECT_EQ(fill(), kMaxWr);
	const ibv_data_buf nothing = {nullptr, 0};
	EXPECT_EQ(sq_.build_inline(request(TERN_OP_SEND), std::span(&nothing, 1)), ENOMEM);
	sq_.complete(0);
	EXPECT_EQ(fill(), 1u);
}

TEST_F(SendQueueLimitTest, AsManyOfTheLargestSizeFit)
{
	EXPECT_EQ(fill(2), kMaxWr);
	sq_.complete(2);
	EXPECT_EQ(fill(), 2u);
}

/* A completion says that the requests before it are complete, too, which have none of their own. */
TEST_F(SendQueueLimitTest, UnsignalledRequestsCompleteWithALaterOne)
{
	EXPECT_EQ(fill(), kMaxWr);
	sq_.complete(2);
	EXPECT_EQ(fill(), 3u);
	sq_.complete(3);
	EXPECT_EQ(fill(), 1u);
	sq_.complete(7);
	EXPECT_EQ(fill(), kMaxWr);
}

TEST_F(SendQueueLimitTest, DiscardedRequestsDoNotCount)
{
	ASSERT_EQ(sq_.build(request(TERN_OP_SEND), sges(1)), 0);
	sq_.publish();
	for (uint32_t i = 1; i < kMaxWr; i++)
		ASSERT_EQ(sq_.build(request(TERN_OP_SEND), sges(1)), 0);
	sq_.discard();
	EXPECT_EQ(fill(), kMaxWr - 1);
}

TEST_F(SendQueueLimitTest, ResetEmptiesTheQueue)
{
	EXPECT_EQ(fill(), kMaxWr);
	sq_.complete(1);
	sq_.reset();
	EXPECT_EQ(fill(), kMaxWr);
	sq_.complete(0);
	EXPECT_EQ(fill(), 1u);
}

TEST_F(SendQueueLimitTest, TheLimitHoldsPastTheEndOfTheRing)
{
	ASSERT_EQ(fill(), kMaxWr);
	for (uint32_t i = 0; i < 1000; i++) {
		sq_.complete(i);
		ASSERT_EQ(fill(), 1u) << i;
	}
}

/* ---- lists -------------------------------------------------------------------------------- */

TEST_F(SendQueueTest, DiscardedRequestsLeaveNoTrace)
{
	SendQueue sq;
	make_sq(sq, 4);

	ASSERT_EQ(sq.build(request(TERN_OP_SEND, 1), {}), 0);
	sq.publish();
	ASSERT_EQ(sq.build(request(TERN_OP_SEND, 2), sges(7)), 0);
	sq.discard();
	ASSERT_EQ(sq.build(request(TERN_OP_SEND, 3), {}), 0);
	sq.publish();
	EXPECT_EQ(doorbell(TERN_DB_SQ) >> 32, 2u);
	EXPECT_EQ(sq.complete(0), 1u);
	EXPECT_EQ(sq.complete(1), 3u);
}

TEST_F(SendQueueTest, RefusalsLeaveNoTrace)
{
	SendQueue sq;
	SendQueue::Config config = sq_config(8);
	config.max_sge = 2;
	config.max_inline = 20;
	config.ops = send_ops_of(Service::kRc, kAllCaps & ~TERN_CAP_ATOMIC);
	ASSERT_EQ(sq.init(config), 0);
	auto data = counting(21);
	const ibv_data_buf long_buf = {data.data(), 21};
	const ibv_data_buf huge_buf = {data.data(), SIZE_MAX};
	const ibv_data_buf twice[] = {{data.data(), 11}, {data.data(), 10}};

	EXPECT_EQ(sq.build(request(TERN_OP_SEND), sges(3)), ENOMEM);
	EXPECT_EQ(sq.build_inline(request(TERN_OP_SEND), std::span(&long_buf, 1)), ENOMEM);
	EXPECT_EQ(sq.build_inline(request(TERN_OP_SEND), std::span(&huge_buf, 1)), ENOMEM);
	EXPECT_EQ(sq.build_inline(request(TERN_OP_SEND), std::span(twice)), ENOMEM);
	EXPECT_EQ(sq.build_inline(request(TERN_OP_READ), std::span<const ibv_sge>()), EINVAL);
	EXPECT_EQ(sq.build_inline(request(TERN_OP_CMP_SWAP), std::span<const ibv_sge>()), EINVAL);
	EXPECT_EQ(sq.build(request(TERN_OP_FETCH_ADD), sges(1)), EINVAL) << "no such capability";
	sq.publish();
	EXPECT_EQ(doorbell(TERN_DB_SQ), kNoDoorbell);
	EXPECT_EQ(bytes(0, 512), Bytes(512, 0xee));
}

TEST_F(SendQueueTest, AtomicsTakeExactlyOneBuffer)
{
	SendQueue sq;
	make_sq(sq, 8);

	EXPECT_EQ(sq.build(request(TERN_OP_FETCH_ADD), {}), EINVAL);
	EXPECT_EQ(sq.build(request(TERN_OP_CMP_SWAP), sges(2)), EINVAL);
	EXPECT_EQ(sq.build(request(TERN_OP_CMP_SWAP), sges(1)), 0);
}

TEST_F(SendQueueTest, AtomicsUseEightBytesOfALongerBuffer)
{
	SendQueue sq;
	make_sq(sq, 8);
	ibv_sge buffer = {0x1000, 4096, 0x77};

	ASSERT_EQ(sq.build(request(TERN_OP_CMP_SWAP), {&buffer, 1}), 0);
	EXPECT_EQ(segment<tern_hw_data_seg>(3).length.get(), 8u);
	EXPECT_EQ(segment<tern_hw_data_seg>(3).addr.get(), 0x1000u);
	ASSERT_EQ(sq.build(request(TERN_OP_FETCH_ADD), {&buffer, 1}), 0);
	EXPECT_EQ(segment<tern_hw_data_seg>(7).length.get(), 8u);
	ASSERT_EQ(sq.build(request(TERN_OP_READ), {&buffer, 1}), 0);
	EXPECT_EQ(segment<tern_hw_data_seg>(10).length.get(), 4096u);

	buffer.length = 4;
	ASSERT_EQ(sq.build(request(TERN_OP_CMP_SWAP), {&buffer, 1}), 0);
	EXPECT_EQ(segment<tern_hw_data_seg>(15).length.get(), 4u) << "which the card refuses";
}

TEST_F(SendQueueTest, AtomicWritesTakeOneBufferOrEightBytesInline)
{
	SendQueue sq;
	SendQueue::Config config = sq_config(8);
	config.max_inline = 0;
	ASSERT_EQ(sq.init(config), 0);
	const ibv_sge one = sge();
	auto data = counting(9);
	const ibv_data_buf eight = {data.data(), 8}, nine = {data.data(), 9};

	EXPECT_EQ(sq.build(request(TERN_OP_ATOMIC_WRITE), {}), EINVAL);
	EXPECT_EQ(sq.build(request(TERN_OP_ATOMIC_WRITE), sges(2)), EINVAL);
	EXPECT_EQ(sq.build_inline(request(TERN_OP_ATOMIC_WRITE), std::span(&nine, 1)), ENOMEM);
	EXPECT_EQ(sq.build_inline(request(TERN_OP_WRITE), std::span(&eight, 1)), ENOMEM);
	ASSERT_EQ(sq.build(request(TERN_OP_ATOMIC_WRITE), {&one, 1}), 0);
	EXPECT_EQ(bytes(0, 48), control(0x0c, 0, 3) + kRemoteSegment + kDataSegment);
	ASSERT_EQ(sq.build_inline(request(TERN_OP_ATOMIC_WRITE), std::span(&eight, 1)), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(4).flags, TERN_WQE_INLINE);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(4).inline_len.get(), 8u);
	EXPECT_EQ(bytes(64 + 32, 8), counting(8));
}

TEST_F(SendQueueTest, FlushSaysWhatAndTakesNoData)
{
	SendQueue sq;
	make_sq(sq, 8);
	auto flush = request(TERN_OP_FLUSH);
	flush.flags = TERN_WQE_FENCE | TERN_WQE_SOLICITED;
	flush.flush_length = 0x71727374;
	flush.flush_type = 3;
	flush.flush_level = 1;
	const ibv_data_buf nothing = {nullptr, 0};

	EXPECT_EQ(sq.build(flush, sges(1)), EINVAL);
	EXPECT_EQ(sq.build_inline(flush, std::span(&nothing, 1)), EINVAL);
	ASSERT_EQ(sq.build(flush, {}), 0);
	const Bytes what = {0x74, 0x73, 0x72, 0x71, 3, 1};
	EXPECT_EQ(bytes(0, 48),
	          control(0x0d, TERN_WQE_FENCE, 3) + kRemoteSegment + what + Bytes(10, 0));
}

TEST_F(SendQueueTest, SignalAllSignalsAll)
{
	SendQueue sq;
	SendQueue::Config config = sq_config(8);
	config.signal_all = true;
	ASSERT_EQ(sq.init(config), 0);

	ASSERT_EQ(sq.build(request(TERN_OP_SEND), {}), 0);
	EXPECT_EQ(segment<tern_hw_ctrl_seg>(0).flags, TERN_WQE_SIGNALED);
}

TEST_F(SendQueueTest, ResetStartsAnew)
{
	SendQueue sq;
	make_sq(sq, 4);
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(sq.build(request(TERN_OP_SEND), {}), 0);
	sq.publish();

	sq.reset();
	ASSERT_EQ(sq.build(request(TERN_OP_SEND, 9), {}), 0);
	sq.publish();
	EXPECT_EQ(doorbell(TERN_DB_SQ) >> 32, 1u);
	EXPECT_EQ(sq.complete(0), 9u);
}

TEST_F(SendQueueTest, BadGeometryIsRefused)
{
	SendQueue sq;
	SendQueue::Config config = sq_config(3);
	EXPECT_EQ(sq.init(config), EINVAL);
	config = sq_config(0);
	EXPECT_EQ(sq.init(config), EINVAL);
	config = sq_config(4);
	config.max_sge = TERN_MAX_SEND_SGE + 1;
	EXPECT_EQ(sq.init(config), EINVAL);
	config = sq_config(4);
	config.max_inline = TERN_MAX_INLINE + 1;
	EXPECT_EQ(sq.init(config), EINVAL);
}

} // namespace tern::provider::test
