// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/port/receive_wq.h"

namespace tern {

using namespace hw;

CommandStatus ReceiveWq::enter(tern_hw_wq_state state)
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
		break;
	}
	enter_error();
	return TERN_AQ_OK;
}

} // namespace tern
