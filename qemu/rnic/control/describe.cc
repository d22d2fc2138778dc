// SPDX-License-Identifier: GPL-2.0-or-later
/* The card's state as text. */
#include "qemu/rnic/control/describe.h"

#include "qemu/rnic/card.h"
#include "qemu/rnic/json.h"
#include "qemu/rnic/names.h"

namespace tern {

using namespace hw;

namespace {

/* The first @most objects of @table, each with its number. */
template <typename T>
void describe_all(Json &to, const char *name, const ObjectTable<T> &table, size_t most)
{
	size_t listed = 0;
	to.list(name, [&] {
		table.for_each([&](uint32_t number, const T &object) {
			if (listed++ >= most)
				return;
			to.object({}, [&] {
				to.number("number", number);
				object.describe(to);
			});
		});
	});
	if (listed > most)
		to.number(std::string(name) + "_not_listed", listed - most);
}

void describe_qp(Json &to, const Card &card, uint32_t qpn)
{
	to.list("qps", [&] {
		if (const Qp *qp = card.qps.find(qpn))
			to.object({}, [&] {
				to.number("number", qpn);
				qp->describe(to);
			});
	});
}

/* The QP that a command is for; 0: none. */
uint32_t qpn_of(const tern_hw_aq_cmd &command)
{
	switch (command.opcode.get()) {
	case TERN_AQ_MODIFY_QP:
		return command.modify_qp.qpn.get();
	case TERN_AQ_RESUME_QP:
		return command.resume_qp.qpn.get();
	case TERN_AQ_QUERY_QP:
	case TERN_AQ_DESTROY_QP:
	case TERN_AQ_QUERY_FAULT:
		return command.object.id.get();
	default:
		return 0;
	}
}

} // namespace

void AdminQueue::describe(Json &to) const
{
	to.number("entries", 1u << log_size_);
	to.number("pi", pi_);
	to.number("ci", ci_);
	to.number("refuse_in", refuse_in_);
	to.text("running", running_ ? command_name(command_.opcode.get()) : "");
	to.number("qpn", running_ ? qpn_of(command_) : 0);
}

std::string describe(const Card &card, std::optional<uint32_t> qpn, size_t most)
{
	Json to;
	to.object({}, [&] {
		to.number("engine", card.config.engine);
		to.bytes("mac", card.out.mac, 1);
		to.flag("link", card.link_up);
		to.flag("enabled", card.enabled);
		to.text("fatal", fatal_name(card.fatal));
		to.text("last_fatal", fatal_name(card.last_fatal));
		to.object("commands", [&] { card.admin.describe(to); });
		to.object("counters", [&] {
			for (uint32_t i = 0; i < TERN_STAT_COUNT; i++) {
				const auto stat = static_cast<tern_hw_stat>(i);
				to.number(stat_name(stat), card.stats[stat]);
			}
		});
		describe_all(to, "eqs", card.eqs, most);
		describe_all(to, "cqs", card.cqs, most);
		describe_all(to, "srqs", card.srqs, most);
		describe_all(to, "wqs", card.wqs, most);
		if (qpn)
			describe_qp(to, card, *qpn);
		else
			describe_all(to, "qps", card.qps, most);
	});
	return to.written();
}

} // namespace tern
