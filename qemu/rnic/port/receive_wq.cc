// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/receive_wq.h"

namespace tern {

using namespace hw;

tern_hw_aq_status ReceiveWq::enter(tern_hw_wq_state state)
{
	switch (state) {
	case TERN_WQS_RESET:
		reset();
		return TERN_AQ_OK;
	case TERN_WQS_RDY:
		if (state_ == TERN_QPS_ERR)
			return TERN_AQ_BAD_STATE;
		state_ = TERN_QPS_RTR;
		return TERN_AQ_OK;
	case TERN_WQS_ERR:
		enter_error();
		return TERN_AQ_OK;
	}
	return TERN_AQ_BAD_FIELD;
}

} // namespace tern
