// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every step of every service with every attribute, against a second statement of IBA 11.2.5.2:
 * here a line is what one service needs and may have in one step.
 */
#include "qemu/rnic/transport/qp_attr.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tern {
namespace {

using namespace hw;

constexpr uint32_t kCur = TERN_QP_CUR_STATE;
constexpr uint32_t kNotify = TERN_QP_EN_SQD_ASYNC_NOTIFY;
constexpr uint32_t kAccess = TERN_QP_ACCESS_FLAGS;
constexpr uint32_t kPkey = TERN_QP_PKEY_INDEX;
constexpr uint32_t kPort = TERN_QP_PORT;
constexpr uint32_t kQkey = TERN_QP_QKEY;
constexpr uint32_t kAv = TERN_QP_AV;
constexpr uint32_t kMtu = TERN_QP_PATH_MTU;
constexpr uint32_t kTimeout = TERN_QP_TIMEOUT;
constexpr uint32_t kRetry = TERN_QP_RETRY_CNT;
constexpr uint32_t kRnr = TERN_QP_RNR_RETRY;
constexpr uint32_t kRqPsn = TERN_QP_RQ_PSN;
constexpr uint32_t kRd = TERN_QP_MAX_QP_RD_ATOMIC;
constexpr uint32_t kTimer = TERN_QP_MIN_RNR_TIMER;
constexpr uint32_t kSqPsn = TERN_QP_SQ_PSN;
constexpr uint32_t kDestRd = TERN_QP_MAX_DEST_RD_ATOMIC;
constexpr uint32_t kDest = TERN_QP_DEST_QPN;
constexpr uint32_t kRate = TERN_QP_RATE_LIMIT;

struct Step {
	tern_hw_qp_state from;
	tern_hw_qp_state to;
	uint32_t required;
	uint32_t optional;
};

struct Service {
	const char *name;
	tern_hw_qp_type type;
	std::vector<Step> steps;
};

const Service kServices[] = {
        {"Rc",
         TERN_QPT_RC,
         {{TERN_QPS_RESET, TERN_QPS_INIT, kPkey | kPort | kAccess, 0},
          {TERN_QPS_INIT, TERN_QPS_INIT, 0, kPkey | kPort | kAccess},
          {TERN_QPS_INIT, TERN_QPS_RTR, kAv | kMtu | kDest | kRqPsn | kDestRd | kTimer,
           kAccess | kPkey},
          {TERN_QPS_RTR, TERN_QPS_RTS, kTimeout | kRetry | kRnr | kSqPsn | kRd,
           kCur | kAccess | kTimer | kRate},
          {TERN_QPS_RTS, TERN_QPS_RTS, 0, kCur | kAccess | kTimer | kRate},
          {TERN_QPS_RTS, TERN_QPS_SQD, 0, kNotify},
          {TERN_QPS_SQD, TERN_QPS_SQD, 0,
           kPort | kAv | kTimeout | kRetry | kRnr | kRd | kDestRd | kAccess | kPkey | kTimer},
          {TERN_QPS_SQD, TERN_QPS_RTS, 0, kCur | kAccess | kTimer}}},
        {"XrcIni",
         TERN_QPT_XRC_INI,
         {{TERN_QPS_RESET, TERN_QPS_INIT, kPkey | kPort | kAccess, 0},
          {TERN_QPS_INIT, TERN_QPS_INIT, 0, kPkey | kPort | kAccess},
          {TERN_QPS_INIT, TERN_QPS_RTR, kAv | kMtu | kDest | kRqPsn, kAccess | kPkey},
          {TERN_QPS_RTR, TERN_QPS_RTS, kTimeout | kRetry | kRnr | kSqPsn | kRd,
           kCur | kAccess | kRate},
          {TERN_QPS_RTS, TERN_QPS_RTS, 0, kCur | kAccess | kRate},
          {TERN_QPS_RTS, TERN_QPS_SQD, 0, kNotify},
          {TERN_QPS_SQD, TERN_QPS_SQD, 0,
           kPort | kAv | kTimeout | kRetry | kRnr | kRd | kAccess | kPkey},
          {TERN_QPS_SQD, TERN_QPS_RTS, 0, kCur | kAccess}}},
        {"XrcTgt",
         TERN_QPT_XRC_TGT,
         {{TERN_QPS_RESET, TERN_QPS_INIT, kPkey | kPort | kAccess, 0},
          {TERN_QPS_INIT, TERN_QPS_INIT, 0, kPkey | kPort | kAccess},
          {TERN_QPS_INIT, TERN_QPS_RTR, kAv | kMtu | kDest | kRqPsn | kDestRd | kTimer,
           kAccess | kPkey},
          {TERN_QPS_RTR, TERN_QPS_RTS, kTimeout | kSqPsn, kCur | kAccess | kTimer},
          {TERN_QPS_RTS, TERN_QPS_RTS, 0, kCur | kAccess | kTimer},
          {TERN_QPS_RTS, TERN_QPS_SQD, 0, kNotify},
          {TERN_QPS_SQD, TERN_QPS_SQD, 0,
           kPort | kAv | kTimeout | kDestRd | kAccess | kPkey | kTimer},
          {TERN_QPS_SQD, TERN_QPS_RTS, 0, kCur | kAccess | kTimer}}},
        {"Uc",
         TERN_QPT_UC,
         {{TERN_QPS_RESET, TERN_QPS_INIT, kPkey | kPort | kAccess, 0},
          {TERN_QPS_INIT, TERN_QPS_INIT, 0, kPkey | kPort | kAccess},
          {TERN_QPS_INIT, TERN_QPS_RTR, kAv | kMtu | kDest | kRqPsn, kAccess | kPkey},
          {TERN_QPS_RTR, TERN_QPS_RTS, kSqPsn, kCur | kAccess | kRate},
          {TERN_QPS_RTS, TERN_QPS_RTS, 0, kCur | kAccess | kRate},
          {TERN_QPS_RTS, TERN_QPS_SQD, 0, kNotify},
          {TERN_QPS_SQD, TERN_QPS_SQD, 0, kAv | kAccess | kPkey},
          {TERN_QPS_SQD, TERN_QPS_RTS, 0, kCur | kAccess},
          {TERN_QPS_SQE, TERN_QPS_RTS, 0, kCur | kAccess}}},
        {"Ud",
         TERN_QPT_UD,
         {{TERN_QPS_RESET, TERN_QPS_INIT, kPkey | kPort | kQkey, 0},
          {TERN_QPS_INIT, TERN_QPS_INIT, 0, kPkey | kPort | kQkey},
          {TERN_QPS_INIT, TERN_QPS_RTR, 0, kPkey | kQkey},
          {TERN_QPS_RTR, TERN_QPS_RTS, kSqPsn, kCur | kQkey | kRate},
          {TERN_QPS_RTS, TERN_QPS_RTS, 0, kCur | kQkey | kRate},
          {TERN_QPS_RTS, TERN_QPS_SQD, 0, kNotify},
          {TERN_QPS_SQD, TERN_QPS_SQD, 0, kPkey | kQkey},
          {TERN_QPS_SQD, TERN_QPS_RTS, 0, kCur | kQkey},
          {TERN_QPS_SQE, TERN_QPS_RTS, 0, kCur | kQkey}}},
        {"Gsi",
         TERN_QPT_GSI,
         {{TERN_QPS_RESET, TERN_QPS_INIT, kPkey, kPort | kQkey},
          {TERN_QPS_INIT, TERN_QPS_INIT, 0, kPkey | kPort | kQkey},
          {TERN_QPS_INIT, TERN_QPS_RTR, 0, kPkey | kQkey},
          {TERN_QPS_RTR, TERN_QPS_RTS, kSqPsn, kCur | kQkey},
          {TERN_QPS_RTS, TERN_QPS_RTS, 0, kCur | kQkey},
          {TERN_QPS_RTS, TERN_QPS_SQD, 0, kNotify},
          {TERN_QPS_SQD, TERN_QPS_SQD, 0, kPkey | kQkey},
          {TERN_QPS_SQD, TERN_QPS_RTS, 0, kCur | kQkey},
          {TERN_QPS_SQE, TERN_QPS_RTS, 0, kCur | kQkey}}},
        {"Raw",
         TERN_QPT_RAW,
         {{TERN_QPS_RESET, TERN_QPS_INIT, 0, kPort},
          {TERN_QPS_INIT, TERN_QPS_INIT, 0, kPort},
          {TERN_QPS_INIT, TERN_QPS_RTR, 0, 0},
          {TERN_QPS_RTR, TERN_QPS_RTS, 0, kRate},
          {TERN_QPS_RTS, TERN_QPS_RTS, 0, kRate}}},
        {"Eth",
         TERN_QPT_ETH,
         {{TERN_QPS_RESET, TERN_QPS_INIT, 0, 0},
          {TERN_QPS_INIT, TERN_QPS_INIT, 0, 0},
          {TERN_QPS_INIT, TERN_QPS_RTR, 0, 0},
          {TERN_QPS_RTR, TERN_QPS_RTS, 0, 0},
          {TERN_QPS_RTS, TERN_QPS_RTS, 0, 0}}},
};

constexpr tern_hw_qp_state kStates[] = {TERN_QPS_RESET, TERN_QPS_INIT, TERN_QPS_RTR, TERN_QPS_RTS,
                                        TERN_QPS_SQD,   TERN_QPS_SQE,  TERN_QPS_ERR};

class QpAttr : public ::testing::TestWithParam<Service> {
protected:
	/* All values in range. */
	static tern_hw_aq_status check(tern_hw_qp_state from, tern_hw_qp_state to, uint32_t mask)
	{
		tern_hw_qp_attr attr{};
		attr.state = static_cast<uint8_t>(to);
		attr.cur_state = static_cast<uint8_t>(from);
		attr.port = 1;
		attr.path_mtu = 1;
		return check_attributes(GetParam().type, from, mask | TERN_QP_STATE, attr).value();
	}
	static const Step *find(tern_hw_qp_state from, tern_hw_qp_state to)
	{
		for (const Step &step : GetParam().steps)
			if (step.from == from && step.to == to)
				return &step;
		return nullptr;
	}
};

TEST_P(QpAttr, EachStepTakesItsAttributesAndNoOthers)
{
	for (const Step &step : GetParam().steps) {
		SCOPED_TRACE(std::to_string(step.from) + " to " + std::to_string(step.to));
		EXPECT_EQ(check(step.from, step.to, step.required), TERN_AQ_OK);
		EXPECT_EQ(check(step.from, step.to, step.required | step.optional), TERN_AQ_OK);
		for (unsigned n = 1; n < 32; n++) {
			const uint32_t bit = 1u << n;
			const auto expected = (step.required | step.optional) & bit
			                              ? TERN_AQ_OK
			                              : TERN_AQ_BAD_STATE;
			EXPECT_EQ(check(step.from, step.to, step.required | bit), expected)
			        << "bit " << n;
			if (step.required & bit) {
				EXPECT_EQ(check(step.from, step.to, step.required & ~bit),
				          TERN_AQ_BAD_STATE)
				        << "without bit " << n;
			}
		}
	}
}

/* RESET and ERR are reached from everywhere, without attributes; all else is in the table. */
TEST_P(QpAttr, OtherStepsAreNone)
{
	for (const auto from : kStates)
		for (const auto to : kStates) {
			if (find(from, to))
				continue;
			const bool always = to == TERN_QPS_RESET || to == TERN_QPS_ERR;
			EXPECT_EQ(check(from, to, 0), always ? TERN_AQ_OK : TERN_AQ_BAD_STATE)
			        << from << " to " << to;
			for (unsigned n = 1; n < 32; n++)
				EXPECT_EQ(check(from, to, 1u << n), TERN_AQ_BAD_STATE)
				        << from << " to " << to << " bit " << n;
		}
}

TEST_P(QpAttr, UnknownStates)
{
	for (const auto from : kStates)
		EXPECT_EQ(check(from, static_cast<tern_hw_qp_state>(7), 0), TERN_AQ_BAD_STATE);
}

INSTANTIATE_TEST_SUITE_P(Services, QpAttr, ::testing::ValuesIn(kServices),
                         [](const auto &service) { return service.param.name; });

/* Without STATE the QP stays where it is. */
TEST(QpAttrMask, NoStateIsNoStep)
{
	tern_hw_qp_attr attr{};
	attr.state = TERN_QPS_RTS;
	EXPECT_EQ(next_state(TERN_QPS_INIT, kQkey, attr), TERN_QPS_INIT);
	EXPECT_EQ(check_attributes(TERN_QPT_UD, TERN_QPS_RTS, kQkey, attr), TERN_AQ_OK);
	EXPECT_EQ(check_attributes(TERN_QPT_UD, TERN_QPS_RTR, kQkey, attr), TERN_AQ_BAD_STATE);
}

/* What the mask does not name is not taken. */
TEST(QpAttrMask, TakesWhatItNames)
{
	tern_hw_qp_attr from{};
	from.qkey = 1;
	from.sq_psn = 2;
	from.sl = 3;
	from.dgid[0] = 4;
	tern_hw_qp_attr to{};
	take_attributes(TERN_QP_QKEY, from, to);
	EXPECT_EQ(to.qkey.get(), 1u);
	EXPECT_EQ(to.sq_psn.get(), 0u);
	EXPECT_EQ(to.sl, 0);
	take_attributes(TERN_QP_AV, from, to);
	EXPECT_EQ(to.sl, 3);
	EXPECT_EQ(to.dgid[0], 4);
	EXPECT_EQ(to.sq_psn.get(), 0u);
}

} // namespace
} // namespace tern
