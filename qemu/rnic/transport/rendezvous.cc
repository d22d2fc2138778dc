// SPDX-License-Identifier: GPL-2.0-or-later
#include "qemu/rnic/transport/rendezvous.h"

#include "qemu/rnic/formats/headers.h"

namespace tern {

using namespace hw;

void Rendezvous::make_read(SendWqe &wqe) const
{
	wqe.opcode = TERN_OP_READ;
	wqe.flags = 0;
	wqe.imm = 0;
	wqe.srqn = 0;
	wqe.remote_addr = from.va.get();
	wqe.rkey = from.rkey.get();
	wqe.length = from.length.get();
	wqe.sge[0] = {buffer.addr, from.length.get(), buffer.lkey};
	wqe.sge_count = 1;
}

void Rendezvous::make_fin(SendWqe &wqe) const
{
	headers::TagMatching fin = tag;
	fin.opcode = headers::kTagFin;
	headers::Writer out(wqe.raw);
	out.put(fin);
	out.put(from);

	wqe.opcode = TERN_OP_SEND;
	wqe.flags = TERN_WQE_INLINE;
	wqe.imm = 0;
	wqe.srqn = 0;
	wqe.length = out.size();
	wqe.sge_count = 0;
	wqe.inline_offset = 0;
	wqe.inline_size = static_cast<uint16_t>(out.size());
}

void RendezvousQueue::end_fin()
{
	items_.pop_front();
	first_++;
}

} // namespace tern
