// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/control/mcast_commands.h"

#include <algorithm>

#include "qemu/rnic/card.h"

namespace tern {

using namespace hw;

namespace {

Gid mgid_of(const tern_hw_mcast &cmd)
{
	Gid mgid;
	std::ranges::copy(cmd.mgid, mgid.bytes.begin());
	return mgid;
}

CommandStatus check_mcast(const Card &card, const tern_hw_mcast &cmd)
{
	const auto valid = check_fields(
	        {{cmd.mgid, mgid_of(cmd).is_multicast()}, {cmd.rsvd, !cmd.rsvd.get()}});
	if (valid != TERN_AQ_OK)
		return valid;
	const Qp *qp = card.qps.find(cmd.qpn.get());
	return qp && qp->config().type == TERN_QPT_UD ? TERN_AQ_OK : TERN_AQ_BAD_OBJECT;
}

} // namespace

CommandStatus attach_mcast(Card &card, const tern_hw_mcast &cmd)
{
	const auto status = check_mcast(card, cmd);
	if (status == TERN_AQ_OK && !card.groups.attach(mgid_of(cmd), cmd.qpn.get()))
		return TERN_AQ_NO_RESOURCE;
	return status;
}

CommandStatus detach_mcast(Card &card, const tern_hw_mcast &cmd)
{
	const auto status = check_mcast(card, cmd);
	if (status == TERN_AQ_OK && !card.groups.detach(mgid_of(cmd), cmd.qpn.get()))
		return TERN_AQ_BAD_OBJECT;
	return status;
}

} // namespace tern
