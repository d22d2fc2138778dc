// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "qp_table.h"

#include <mutex>

#include "memory.h"

namespace tern::provider {

QpTable::~QpTable()
{
	for (const auto &leaf : root_)
		Owned<Leaf>(leaf.load(std::memory_order_relaxed));
}

bool QpTable::reserve(uint32_t qpn)
{
	if (find(qpn))
		return true;
	Owned<Leaf> leaf = make_owned<Leaf>();
	if (!leaf)
		return false;

	const std::lock_guard guard(lock_);
	if (!find(qpn))
		leaf_of(qpn).store(leaf.release(), std::memory_order_release);
	return true;
}

void QpTable::insert(uint32_t qpn, QueueOfCq<SendQueue> send, QueueOfCq<RecvQueue> recv)
{
	const std::lock_guard guard(lock_);
	Entry *entry = writable(qpn);

	entry->send.set(send);
	entry->recv.set(recv);
}

bool QpTable::remove(uint32_t qpn, const SendQueue *sq)
{
	const std::lock_guard guard(lock_);
	Entry *entry = writable(qpn);

	if (!entry || entry->send.queue.load(std::memory_order_relaxed) != sq)
		return false;
	entry->send.set({});
	entry->recv.set({});
	return true;
}

} // namespace tern::provider
