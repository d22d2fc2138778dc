// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory that an endpoint lends to its peer: it makes a key, the peer writes by it and gives it
 * back, or has it taken back. */
#include <algorithm>

#include "tests/sim/endpoint.h"

namespace tern::sim {

using namespace hw;
using test::SendRequest;

namespace {
constexpr uint8_t kRights = TERN_ACCESS_REMOTE_WRITE;
} // namespace

void Endpoint::set_up_loan(uint32_t pd)
{
	/* Page lists are the kernel's; and the two ends of XRC are two QPs, but type 2B is of one.
	 */
	const bool may_register = qp->options.db_page == TERN_DB_PAGE_KERNEL;
	if (target && !may_register)
		return;
	loan_.fast = may_register && (target || rng_.chance(1, 2));
	loan_.key = loan_.fast ? node.driver.create_fast_mr(pd)
	                       : node.driver.alloc_mw(pd, TERN_MW_TYPE_2,
	                                              static_cast<uint8_t>(rng_.below(256)));
	loan_.left = static_cast<unsigned>(rng_.below(4));
}

void Endpoint::lend()
{
	if (!loan_.left)
		return;
	loan_.left--;
	loan_.out = true;
	/* The next variant. */
	loan_.key = (loan_.key & ~0xffu) | ((loan_.key + 1) & 0xff);
	loan_.offset = rng_.below(lent_.model.size() - 1);
	loan_.length = static_cast<uint32_t>(rng_.between(1, lent_.model.size() - loan_.offset));
	loan_.fast ? lend_region() : lend_window();
}

void Endpoint::lend_window()
{
	const bool zero_based = rng_.chance(1, 2);
	SendRequest request{.opcode = TERN_OP_BIND_MW};
	request.bind.emplace();
	request.bind->addr = lent_.mr.va + loan_.offset;
	request.bind->length = loan_.length;
	request.bind->rkey = loan_.key;
	request.bind->lkey = lent_.mr.key;
	request.bind->access = kRights | (zero_based ? TERN_ACCESS_ZERO_BASED : 0);
	loan_.va = zero_based ? 0 : lent_.mr.va + loan_.offset;
	push(std::move(request), 0);
}

/* The whole area, at another address in the same place of its pages. */
void Endpoint::lend_region()
{
	const uint64_t start = lent_.mr.va + (rng_.below(1000) << 21);
	SendRequest request{.opcode = TERN_OP_REG_MR};
	request.reg.emplace();
	request.reg->start = start;
	request.reg->length = uint64_t{lent_.model.size()};
	request.reg->pages = lent_.mr.buffer.pages();
	request.reg->key = loan_.key;
	request.reg->access = kRights | TERN_ACCESS_LOCAL_WRITE;
	loan_.va = start + loan_.offset;
	push(std::move(request), 0);
}

void Endpoint::lent()
{
	if (!peer->gone_)
		peer->borrow(loan_);
}

void Endpoint::borrow(const Loan &loan)
{
	const auto length = static_cast<uint32_t>(rng_.below(loan.length + 1));
	const uint64_t at = rng_.below(loan.length - length + 1);
	SendRequest write{.opcode = TERN_OP_WRITE, .flags = 0};
	write.remote_addr = loan.va + at;
	write.rkey = loan.key;
	write.sges = {source_.mr.sge(0, std::min<uint32_t>(length, source_.model.size()))};
	const auto data = gather(source_, write.sges);
	std::ranges::copy(data,
	                  peer->lent_.model.begin() + static_cast<ptrdiff_t>(loan.offset + at));
	push(std::move(write), static_cast<uint32_t>(data.size()));

	const bool invalidate = rng_.chance(2, 3);
	SendRequest done{
	        .opcode = static_cast<uint8_t>(invalidate ? TERN_OP_SEND_INV : TERN_OP_SEND)};
	done.imm = invalidate ? loan.key : 0;
	done.sges = {source_.mr.sge(0, static_cast<uint32_t>(rng_.below(64)))};
	auto bytes = gather(source_, done.sges);
	const auto size = static_cast<uint32_t>(bytes.size());
	peer->expect({.cqe_opcode = TERN_CQE_RECV,
	              .imm = done.imm,
	              .length = size,
	              .data = std::move(bytes),
	              .has_key = invalidate,
	              .ends_loan = true});
	push(std::move(done), size);
}

void Endpoint::end_loan(bool invalidated)
{
	if (invalidated) {
		loan_.out = false;
		lend();
		return;
	}
	push({.opcode = TERN_OP_LOCAL_INV, .imm = loan_.key}, 0);
}

bool Endpoint::take_down_loan()
{
	if (!loan_.key)
		return true;
	return node.driver.destroy(loan_.fast ? TERN_AQ_DESTROY_MR : TERN_AQ_DEALLOC_MW,
	                           loan_.key) == TERN_AQ_OK;
}

} // namespace tern::sim
