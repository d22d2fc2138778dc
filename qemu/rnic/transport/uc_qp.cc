// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/uc_qp.h"

namespace tern {

using namespace hw;

UcQp::UcQp(DataPath &data, const QpConfig &config, SendQueue sq, RecvQueue rq)
        : ConnectedQp(data, config, std::move(sq), std::move(rq)), requester_(*this, data),
          responder_(*this, data)
{
}

void UcQp::stop()
{
	ConnectedQp::stop();
	requester_.reset(Psn());
	responder_.reset(Psn());
}

bool UcQp::deliver(const Packet &packet)
{
	if (service_of(packet.bth.opcode) != Service::Uc)
		return false;
	if (!accepts(packet))
		return true;
	note_established();
	responder_.receive(packet);
	return true;
}

bool UcQp::send_data(unsigned &budget)
{
	return requester_.transmit(budget);
}

void UcQp::query(tern_hw_qp_attr &attr) const
{
	IbQp::query(attr);
	if (receives())
		attr.rq_psn = responder_.expected_psn().value();
	if (sends())
		attr.sq_psn = requester_.next_psn().value();
}

} // namespace tern
