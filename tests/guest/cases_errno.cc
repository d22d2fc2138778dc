// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the verbs answer to arguments that they must refuse: the errno of mlx5, for which most
 * programs are written. The comments say who decides it there: mlx5's provider (libmlx5), its
 * driver (mlx5_ib), the kernel's core, or uverbs or libibverbs, which we share with it.
 */
#include <cerrno>
#include <cstring>

#include <sys/mman.h>

#include "cases.h"
#include "lone_qp.h"

namespace tern::guest {
namespace {

constexpr uint32_t kUnknown = 1u << 31; /* a flag that nobody knows */
constexpr int kBadIndex = 9999;
/* Of anything. Queues may be deeper than the device promises for WQEs of any kind. */
constexpr uint32_t kTooMany = 1 << 24;
constexpr size_t kPage = 4096;

using DmPtr = std::unique_ptr<ibv_dm, Releaser<ibv_free_dm>>;
using MwPtr = std::unique_ptr<ibv_mw, Releaser<ibv_dealloc_mw>>;
using WqPtr = std::unique_ptr<ibv_wq, Releaser<ibv_destroy_wq>>;
using TablePtr = std::unique_ptr<ibv_rwq_ind_table, Releaser<ibv_destroy_rwq_ind_table>>;
using FlowPtr = std::unique_ptr<ibv_flow, Releaser<ibv_destroy_flow>>;

/** Compares answers; what differs is told at the end, all of it. */
class Answers {
public:
	/** Of a call that returns 0 or an errno. */
	void expect(int wanted, const char *call, int got)
	{
		if (got == wanted)
			return;
		differences_ +=
		        format("\n  %s: %s instead of %s", call, name_of(got), name_of(wanted));
	}
	/** Of one that returns an object or, with errno set, null. */
	template <class Create>
	void refuses(int wanted, const char *call, Create create)
	{
		errno = 0;
		expect(wanted, call, create() ? 0 : errno ? errno : -1);
	}
	void judge() const
	{
		if (!differences_.empty())
			throw CheckFailed("other answers than expected:" + differences_);
	}

private:
	static const char *name_of(int error)
	{
		const char *name = error ? strerrorname_np(error) : "success";
		return name ? name : "a failure without an errno";
	}

	std::string differences_;
};

/* A CQ of the extended interface, as @change has it. */
template <class Change>
CqPtr make_cq_ex(const Device &device, Change change)
{
	ibv_cq_init_attr_ex attr = {};
	attr.cqe = 16;
	change(attr);
	ibv_cq_ex *cq = ibv_create_cq_ex(device.context(), &attr);
	return CqPtr(cq ? ibv_cq_ex_to_cq(cq) : nullptr);
}

void completion_queues(Session &s)
{
	const Device &device = s.device;
	ibv_context *context = device.context();
	const auto create = [&](int cqe, int vector = 0) {
		return CqPtr(ibv_create_cq(context, cqe, nullptr, nullptr, vector));
	};
	Answers answers;

	/* libmlx5, mlx5_create_cq() and create_cq() */
	answers.refuses(EINVAL, "create_cq of 0", [&] { return create(0); });
	answers.refuses(EINVAL, "create_cq of -1", [&] { return create(-1); });
	answers.refuses(EINVAL, "create_cq over max_cqe",
	                [&] { return create(device.attr().max_cqe + 1); });
	/* uverbs, create_cq() */
	answers.refuses(EINVAL, "create_cq of no such vector",
	                [&] { return create(16, context->num_comp_vectors); });
	/* libmlx5, create_cq() */
	answers.refuses(EINVAL, "create_cq_ex: comp_mask", [&] {
		return make_cq_ex(device, [](auto &attr) { attr.comp_mask = kUnknown; });
	});
	answers.refuses(EINVAL, "create_cq_ex: flags", [&] {
		return make_cq_ex(device, [](auto &attr) {
			attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
			attr.flags = kUnknown;
		});
	});
	answers.refuses(EOPNOTSUPP, "create_cq_ex: wc_flags", [&] {
		return make_cq_ex(device, [](auto &attr) { attr.wc_flags = uint64_t{1} << 63; });
	});
	answers.refuses(EINVAL, "create_cq_ex: a domain that is no parent", [&] {
		return make_cq_ex(device, [&](auto &attr) {
			attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
			attr.parent_domain = device.pd();
		});
	});

	const CqPtr cq = create(16);
	/* libmlx5, mlx5_resize_cq(); mlx5_ib_resize_cq() */
	answers.expect(EINVAL, "resize_cq to 0", ibv_resize_cq(cq.get(), 0));
	answers.expect(EINVAL, "resize_cq over max_cqe",
	               ibv_resize_cq(cq.get(), device.attr().max_cqe + 1));
	/* libibverbs, ibv_cmd_modify_cq() */
	ibv_modify_cq_attr moderate = {.attr_mask = kUnknown, .moderate = {}};
	answers.expect(EINVAL, "modify_cq: attr_mask", ibv_modify_cq(cq.get(), &moderate));

	const CqPtr extended = make_cq_ex(device, [](auto &) {});
	ibv_poll_cq_attr poll = {.comp_mask = kUnknown};
	/* libmlx5, mlx5_start_poll() */
	answers.expect(EINVAL, "start_poll: comp_mask",
	               ibv_start_poll(reinterpret_cast<ibv_cq_ex *>(extended.get()), &poll));
	answers.judge();
}

QpPtr make_qp(const Device &device, ibv_cq *cq, ibv_qp_init_attr_ex init)
{
	init.send_cq = init.send_cq ? init.send_cq : cq;
	init.recv_cq = cq;
	init.pd = device.pd();
	init.comp_mask |= IBV_QP_INIT_ATTR_PD;
	return QpPtr(ibv_create_qp_ex(device.context(), &init));
}

ibv_qp_init_attr_ex rc_of(ibv_qp_cap cap)
{
	ibv_qp_init_attr_ex init = {};
	init.qp_type = IBV_QPT_RC;
	init.cap = cap;
	return init;
}

constexpr ibv_qp_cap kCap = {.max_send_wr = 4,
                             .max_recv_wr = 4,
                             .max_send_sge = 2,
                             .max_recv_sge = 2,
                             .max_inline_data = 64};

void queue_pairs(Session &s)
{
	const Device &device = s.device;
	const CqPtr cq = make_cq(device, 16);
	const auto create = [&](const ibv_qp_init_attr_ex &init) {
		return make_qp(device, cq.get(), init);
	};
	Answers answers;

	/* libmlx5, mlx5_calc_wq_size() */
	ibv_qp_cap cap = kCap;
	cap.max_send_wr = kTooMany;
	answers.refuses(EINVAL, "create_qp: max_send_wr", [&] { return create(rc_of(cap)); });
	cap = kCap;
	cap.max_recv_wr = kTooMany;
	answers.refuses(EINVAL, "create_qp: max_recv_wr", [&] { return create(rc_of(cap)); });
	cap = kCap;
	cap.max_send_sge = kTooMany;
	answers.refuses(EINVAL, "create_qp: max_send_sge", [&] { return create(rc_of(cap)); });
	cap = kCap;
	cap.max_recv_sge = kTooMany;
	answers.refuses(EINVAL, "create_qp: max_recv_sge", [&] { return create(rc_of(cap)); });
	cap = kCap;
	cap.max_inline_data = kTooMany;
	answers.refuses(EINVAL, "create_qp: max_inline_data", [&] { return create(rc_of(cap)); });

	/* ibv_create_qp(3): with an SRQ the limits of the receive queue do not apply. */
	cap = kCap;
	cap.max_recv_wr = cap.max_recv_sge = kTooMany;
	const SrqPtr srq = make_srq(device, 4);
	ibv_qp_init_attr_ex init = rc_of(cap);
	init.srq = srq.get();
	answers.expect(0, "create_qp with an SRQ: max_recv_wr", create(init) ? 0 : errno);

	init = rc_of(kCap);
	/* mlx5_ib, check_qp_type() */
	init.qp_type = static_cast<ibv_qp_type>(0x77);
	answers.refuses(EOPNOTSUPP, "create_qp: type", [&] { return create(init); });
	/* libmlx5, create_qp(), which forgets to set errno */
	init = rc_of(kCap);
	init.comp_mask = kUnknown;
	answers.refuses(EOPNOTSUPP, "create_qp_ex: comp_mask", [&] { return create(init); });
	/* libibverbs, ibv_cmd_create_qp_ex2() */
	init = rc_of(kCap);
	init.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = kUnknown;
	answers.refuses(EINVAL, "create_qp_ex: unknown flags", [&] { return create(init); });
	/* uverbs, check_creation_flags() */
	init.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
	answers.refuses(EINVAL, "create_qp_ex: flags of raw QPs", [&] { return create(init); });
	/* mlx5_ib, process_create_flags(), where the card cannot */
	init.qp_type = IBV_QPT_RAW_PACKET;
	answers.refuses(EOPNOTSUPP, "create_qp_ex: flags", [&] { return create(init); });
	/* libmlx5, mlx5_qp_fill_wr_pfns() */
	init = rc_of(kCap);
	init.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	init.send_ops_flags = uint64_t{1} << 63;
	answers.refuses(EOPNOTSUPP, "create_qp_ex: send_ops_flags", [&] { return create(init); });
	init.qp_type = IBV_QPT_UC;
	init.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
	answers.refuses(EOPNOTSUPP, "create_qp_ex: READ on UC", [&] { return create(init); });
	answers.judge();
}

void modify_qp(Session &s)
{
	const LoneQp qp(s.device, IBV_QPT_RC);
	Answers answers;
	/* @change spoils the attributes of a step that would be right without. */
	const auto step = [&](ibv_qp_state to, auto change, int more = 0) {
		const ibv_qp_state from = qp.state();
		ibv_qp_attr attr = qp.attributes();
		attr.qp_state = to;
		change(attr);
		return qp.modify(attr,
		                 IBV_QP_STATE | more | transition(IBV_QPT_RC, from, to).required);
	};

	/* mlx5_ib_modify_qp(), by the core's ib_modify_qp_is_ok() */
	qp.lead_to(IBV_QPS_RESET);
	answers.expect(EINVAL, "modify_qp from RESET to RTS", step(IBV_QPS_RTS, [](auto &) {}));
	answers.expect(EINVAL, "modify_qp without the port",
	               qp.go(IBV_QPS_INIT, IBV_QP_PKEY_INDEX));
	/* uverbs, modify_qp(): the port; mlx5_ib_modify_qp() the P_Key */
	answers.expect(EINVAL, "modify_qp: port",
	               step(IBV_QPS_INIT, [](auto &attr) { attr.port_num = 99; }));
	answers.expect(EINVAL, "modify_qp: pkey_index",
	               step(IBV_QPS_INIT, [](auto &attr) { attr.pkey_index = kBadIndex; }));
	/* libibverbs, ibv_cmd_modify_qp() */
	answers.expect(EOPNOTSUPP, "modify_qp: attr_mask",
	               step(
	                       IBV_QPS_INIT, [](auto &) {}, 1 << 30));

	/* core, ib_resolve_eth_dmac() and rdma_fill_sgid_attr(); mlx5_ib, __mlx5_ib_modify_qp() */
	qp.lead_to(IBV_QPS_INIT);
	answers.expect(EINVAL, "modify_qp: sgid_index",
	               step(IBV_QPS_RTR, [](auto &attr) { attr.ah_attr.grh.sgid_index = 255; }));
	answers.expect(EINVAL, "modify_qp: no GRH",
	               step(IBV_QPS_RTR, [](auto &attr) { attr.ah_attr.is_global = 0; }));
	answers.expect(EINVAL, "modify_qp: path_mtu", step(IBV_QPS_RTR, [](auto &attr) {
		               attr.path_mtu = static_cast<ibv_mtu>(9);
	               }));
	/* mlx5_ib, validate_rd_atomic() */
	answers.expect(EINVAL, "modify_qp: max_dest_rd_atomic",
	               step(IBV_QPS_RTR, [](auto &attr) { attr.max_dest_rd_atomic = 255; }));
	qp.lead_to(IBV_QPS_RTR);
	answers.expect(EINVAL, "modify_qp: max_rd_atomic",
	               step(IBV_QPS_RTS, [](auto &attr) { attr.max_rd_atomic = 255; }));
	answers.judge();
}

/* ---- work requests ----------------------------------------------------------------------- */

/** A QP in RTS that takes work by both interfaces and completes none: its peer is silent. */
struct BusyQp {
	explicit BusyQp(Session &s) : buffer(s.device, kPage), cq(make_cq(s.device, 64))
	{
		ibv_qp_init_attr_ex init = rc_of(kCap);
		init.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = IBV_QP_EX_WITH_SEND;
		qp = make_qp(s.device, cq.get(), init);
		check(qp.get(), "a QP: %s", std::strerror(errno));
		ibv_qp_attr attr = {};
		ibv_qp_init_attr made = {};
		check(!ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &made), "ibv_query_qp");
		cap = made.cap;
		sges.assign(cap.max_send_sge + cap.max_recv_sge + 1, buffer.sge(0, 1));
		too_long.resize(cap.max_inline_data + 1);
	}

	void lead_to(const LoneQp &model, ibv_qp_state state) const
	{
		for (int to = IBV_QPS_INIT; to <= state; to++) {
			ibv_qp_attr attr = model.attributes();
			attr.qp_state = static_cast<ibv_qp_state>(to);
			const int mask = transition(IBV_QPT_RC, static_cast<ibv_qp_state>(to - 1),
			                            attr.qp_state)
			                         .required;
			const int err = ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | mask);
			check(!err, "to state %d: %s", to, std::strerror(err));
		}
	}

	int send(ibv_wr_opcode opcode, std::span<ibv_sge> list, unsigned flags = 0)
	{
		ibv_send_wr wr = {}, *bad = nullptr;
		wr.opcode = opcode;
		wr.sg_list = list.data();
		wr.num_sge = static_cast<int>(list.size());
		wr.send_flags = flags;
		const int err = ibv_post_send(qp.get(), &wr, &bad);
		check(!err || bad == &wr, "ibv_post_send does not say which request was bad");
		return err;
	}

	int recv(size_t count)
	{
		ibv_recv_wr wr = {}, *bad = nullptr;
		wr.sg_list = sges.data();
		wr.num_sge = static_cast<int>(count);
		const int err = ibv_post_recv(qp.get(), &wr, &bad);
		check(!err || bad == &wr, "ibv_post_recv does not say which request was bad");
		return err;
	}

	/* What ibv_wr_complete() answers to a SEND whose data @set gives. */
	template <class Set>
	int complete(Set set)
	{
		ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp.get());
		ibv_wr_start(ex);
		ex->wr_id = 0;
		ex->wr_flags = 0;
		ibv_wr_send(ex);
		set(ex);
		return ibv_wr_complete(ex);
	}

	Buffer buffer;
	CqPtr cq;
	QpPtr qp;
	ibv_qp_cap cap{};
	std::vector<ibv_sge> sges;
	std::vector<uint8_t> too_long;
};

/* Posts until it fails, which it must at @depth or soon after; returns with what. */
template <class Post>
int fill_queue(uint32_t depth, Post post)
{
	for (uint32_t posted = 0; posted <= 4 * depth; posted++) {
		const int err = post();
		if (!err)
			continue;
		check(posted >= depth, "only %u of %u requests are taken", posted, depth);
		return err;
	}
	return 0;
}

void post_send(Session &s)
{
	const LoneQp model(s.device, IBV_QPT_RC);
	BusyQp busy(s);
	const std::span one(busy.sges.data(), 1);
	const std::span too_many(busy.sges.data(), busy.cap.max_send_sge + 1);
	ibv_sge long_sge = {reinterpret_cast<uint64_t>(busy.too_long.data()),
	                    static_cast<uint32_t>(busy.too_long.size()), 0};
	const auto give = [&](size_t count) {
		return [&, count](ibv_qp_ex *ex) {
			ibv_wr_set_sge_list(ex, count, busy.sges.data());
		};
	};
	const auto give_inline = [&](ibv_qp_ex *ex) {
		ibv_wr_set_inline_data(ex, busy.too_long.data(), busy.too_long.size());
	};
	Answers answers;

	/* libmlx5 answers ENOMEM, as if it had no room; wr_complete() as here:
	 * mlx5_qp_fill_wr_complete_error(). */
	answers.expect(EINVAL, "post_send in RESET", busy.send(IBV_WR_SEND, one));
	answers.expect(EINVAL, "wr_complete in RESET", busy.complete(give(1)));
	busy.lead_to(model, IBV_QPS_RTS);

	/* libmlx5, _mlx5_post_send() */
	answers.expect(EINVAL, "post_send: opcode", busy.send(static_cast<ibv_wr_opcode>(99), one));
	answers.expect(ENOMEM, "post_send: num_sge", busy.send(IBV_WR_SEND, too_many));
	/* libmlx5, set_data_inl_seg() */
	answers.expect(ENOMEM, "post_send: inline data",
	               busy.send(IBV_WR_SEND, std::span(&long_sge, 1), IBV_SEND_INLINE));
	/* libmlx5, mlx5_send_wr_set_sge_list() and mlx5_send_wr_set_inline_data() */
	answers.expect(ENOMEM, "wr_complete: num_sge", busy.complete(give(too_many.size())));
	answers.expect(ENOMEM, "wr_complete: inline data", busy.complete(give_inline));
	/* libmlx5, mlx5_wq_overflow() */
	answers.expect(ENOMEM, "post_send: a full queue", fill_queue(busy.cap.max_send_wr, [&] {
		               return busy.send(IBV_WR_SEND, one);
	               }));
	answers.expect(ENOMEM, "wr_complete: a full queue", busy.complete(give(1)));
	answers.judge();
}

void post_recv(Session &s)
{
	const LoneQp model(s.device, IBV_QPT_RC);
	BusyQp busy(s);
	const SrqPtr srq = make_srq(s.device, 4);
	ibv_srq_attr made = {};
	check(!ibv_query_srq(srq.get(), &made), "ibv_query_srq");
	const auto post_srq = [&](uint32_t count) {
		std::vector<ibv_sge> sges(count, busy.buffer.sge(0, 1));
		ibv_recv_wr wr = {}, *bad = nullptr;
		wr.sg_list = sges.data();
		wr.num_sge = static_cast<int>(count);
		const int err = ibv_post_srq_recv(srq.get(), &wr, &bad);
		check(!err || bad == &wr, "ibv_post_srq_recv does not say which request was bad");
		return err;
	};
	Answers answers;

	/* libmlx5, mlx5_post_recv() */
	answers.expect(EINVAL, "post_recv in RESET", busy.recv(1));
	busy.lead_to(model, IBV_QPS_INIT);
	answers.expect(EINVAL, "post_recv: num_sge", busy.recv(busy.cap.max_recv_sge + 1));
	answers.expect(ENOMEM, "post_recv: a full queue",
	               fill_queue(busy.cap.max_recv_wr, [&] { return busy.recv(1); }));
	/* libmlx5, mlx5_post_srq_recv() */
	answers.expect(EINVAL, "post_srq_recv: num_sge", post_srq(made.max_sge + 1));
	answers.expect(ENOMEM, "post_srq_recv: a full queue",
	               fill_queue(made.max_wr, [&] { return post_srq(1); }));
	answers.judge();
}

void shared_receive_queues(Session &s)
{
	const Device &device = s.device;
	const auto create = [&](uint32_t max_wr, uint32_t max_sge) {
		ibv_srq_init_attr init = {};
		init.attr = {.max_wr = max_wr, .max_sge = max_sge, .srq_limit = 0};
		return SrqPtr(ibv_create_srq(device.pd(), &init));
	};
	Answers answers;

	/* libmlx5, mlx5_create_srq() */
	answers.refuses(EINVAL, "create_srq: max_wr", [&] {
		return create(static_cast<uint32_t>(device.attr().max_srq_wr) + 1, 1);
	});
	answers.refuses(EINVAL, "create_srq: max_sge", [&] {
		return create(4, static_cast<uint32_t>(device.attr().max_srq_sge) + 1);
	});
	/* libmlx5, mlx5_create_srq_ex() */
	answers.refuses(EINVAL, "create_srq_ex: type", [&] {
		ibv_srq_init_attr_ex init = {};
		init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
		init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
		init.srq_type = static_cast<ibv_srq_type>(77);
		init.pd = device.pd();
		return SrqPtr(ibv_create_srq_ex(device.context(), &init));
	});
	/* mlx5_ib_modify_srq() */
	const SrqPtr srq = create(4, 1);
	ibv_srq_attr attr = {.max_wr = 0, .max_sge = 0, .srq_limit = 1 << 20};
	answers.expect(EINVAL, "modify_srq: srq_limit",
	               ibv_modify_srq(srq.get(), &attr, IBV_SRQ_LIMIT));
	answers.judge();
}

/* ---- memory ------------------------------------------------------------------------------ */

/** Pages that nobody may write to, or, without PROT_READ, even see. */
struct Pages {
	explicit Pages(int protection)
	        : at(mmap(nullptr, kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
	{
		check(at != MAP_FAILED, "mmap: %s", std::strerror(errno));
	}
	~Pages() { munmap(at, kPage); }
	Pages(const Pages &) = delete;
	Pages &operator=(const Pages &) = delete;

	void *at;
};

void regions(Session &s)
{
	const Device &device = s.device;
	const Buffer buffer(device, kPage);
	const Pages unseen(PROT_NONE), constant(PROT_READ);
	const auto reg = [&](void *at, size_t length, int access) {
		return MrPtr(ibv_reg_mr(device.pd(), at, length, access));
	};
	Answers answers;

	/* core, ib_check_mr_access() */
	answers.refuses(EINVAL, "reg_mr: remote without local write",
	                [&] { return reg(buffer.data(), 64, IBV_ACCESS_REMOTE_WRITE); });
	answers.refuses(EINVAL, "reg_mr: atomic without local write",
	                [&] { return reg(buffer.data(), 64, IBV_ACCESS_REMOTE_ATOMIC); });
	answers.refuses(EINVAL, "reg_mr: access", [&] { return reg(buffer.data(), 64, 1 << 15); });
	/* core, ib_umem_get() */
	answers.refuses(EINVAL, "reg_mr of nothing", [&] { return reg(constant.at, 0, 0); });
	answers.refuses(EINVAL, "reg_mr past the end of addresses", [&] {
		return reg(constant.at, ~size_t{0} - reinterpret_cast<uintptr_t>(constant.at), 0);
	});
	answers.refuses(EFAULT, "reg_mr of what is not there",
	                [&] { return reg(unseen.at, kPage, IBV_ACCESS_LOCAL_WRITE); });
	/* uverbs, ib_uverbs_reg_mr() */
	answers.refuses(EINVAL, "reg_mr_iova: another place in the page", [&] {
		return MrPtr(ibv_reg_mr_iova(device.pd(), buffer.data(), 64, 1, 0));
	});
	answers.judge();
}

void advice(Session &s)
{
	const Device &device = s.device;
	const PdPtr other(ibv_alloc_pd(device.context()));
	const Pages pages(PROT_READ | PROT_WRITE);
	const MrPtr mr(ibv_reg_mr(device.pd(), pages.at, kPage, IBV_ACCESS_ON_DEMAND));
	check(mr.get(), "a region on demand: %s", std::strerror(errno));
	const auto advise = [&](ibv_pd *pd, int what, uint32_t flags, uint32_t lkey) {
		ibv_sge sge = {reinterpret_cast<uintptr_t>(pages.at), 64, lkey};
		return ibv_advise_mr(pd, static_cast<ibv_advise_mr_advice>(what), flags, &sge, 1);
	};
	Answers answers;

	/* mlx5_ib_advise_mr() */
	answers.expect(EOPNOTSUPP, "advise_mr: advice", advise(device.pd(), 99, 0, mr->lkey));
	/* uverbs, UVERBS_METHOD_ADVISE_MR */
	answers.expect(EINVAL, "advise_mr: flags",
	               advise(device.pd(), IBV_ADVISE_MR_ADVICE_PREFETCH, kUnknown, mr->lkey));
	/* mlx5_ib, get_prefetchable_mr() */
	for (const uint32_t flags : {0u, uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}}) {
		answers.expect(ENOENT, "advise_mr: lkey",
		               advise(device.pd(), IBV_ADVISE_MR_ADVICE_PREFETCH, flags,
		                      mr->lkey ^ 0xffffff00));
		answers.expect(EPERM, "advise_mr: another domain's region",
		               advise(other.get(), IBV_ADVISE_MR_ADVICE_PREFETCH, flags, mr->lkey));
		answers.expect(
		        EPERM, "advise_mr: no right to write",
		        advise(device.pd(), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, flags, mr->lkey));
	}
	answers.judge();
}

void device_memory(Session &s)
{
	const Device &device = s.device;
	const auto alloc = [&](size_t length, uint32_t align = 0, uint32_t mask = 0) {
		ibv_alloc_dm_attr attr = {
		        .length = length, .log_align_req = align, .comp_mask = mask};
		return DmPtr(ibv_alloc_dm(device.context(), &attr));
	};
	Answers answers;

	/* libmlx5, mlx5dv_alloc_dm(); mlx5_ib, mlx5_cmd_alloc_memic() */
	answers.refuses(EINVAL, "alloc_dm: comp_mask", [&] { return alloc(kPage, 0, kUnknown); });
	answers.refuses(EINVAL, "alloc_dm of nothing", [&] { return alloc(0); });
	answers.refuses(EINVAL, "alloc_dm: alignment", [&] { return alloc(kPage, 60); });
	answers.refuses(ENOMEM, "alloc_dm of more than there is",
	                [&] { return alloc(size_t{1} << 32); });

	const DmPtr dm = alloc(kPage);
	check(dm.get(), "ibv_alloc_dm: %s", std::strerror(errno));
	uint8_t bytes[8] = {};
	/* libmlx5, mlx5_access_dm() */
	answers.expect(EINVAL, "memcpy_to_dm, not aligned",
	               ibv_memcpy_to_dm(dm.get(), 2, bytes, 4));
	answers.expect(EFAULT, "memcpy_to_dm past the end",
	               ibv_memcpy_to_dm(dm.get(), kPage - 4, bytes, 8));
	answers.expect(EFAULT, "memcpy_from_dm past the end, not aligned",
	               ibv_memcpy_from_dm(bytes, dm.get(), kPage - 2, 4));
	/* uverbs, UVERBS_METHOD_DM_MR_REG */
	answers.refuses(EINVAL, "reg_dm_mr that is not zero-based",
	                [&] { return MrPtr(ibv_reg_dm_mr(device.pd(), dm.get(), 0, 64, 0)); });
	answers.refuses(EINVAL, "reg_dm_mr past the end", [&] {
		return MrPtr(
		        ibv_reg_dm_mr(device.pd(), dm.get(), kPage - 8, 64, IBV_ACCESS_ZERO_BASED));
	});
	answers.judge();
}

void windows(Session &s)
{
	const Device &device = s.device;
	const Buffer buffer(device, kPage, kAllAccess | IBV_ACCESS_MW_BIND);
	const PdPtr other(ibv_alloc_pd(device.context()));
	const LoneQp qp(device, IBV_QPT_RC);
	const auto bind = [&](ibv_mw *mw, unsigned access) {
		ibv_mw_bind request = {};
		request.bind_info = {.mr = buffer.mr(),
		                     .addr = buffer.addr(),
		                     .length = 64,
		                     .mw_access_flags = access};
		return ibv_bind_mw(qp.get(), mw, &request);
	};
	Answers answers;

	const MwPtr one(ibv_alloc_mw(device.pd(), IBV_MW_TYPE_1));
	const MwPtr two(ibv_alloc_mw(device.pd(), IBV_MW_TYPE_2));
	const MwPtr foreign(ibv_alloc_mw(other.get(), IBV_MW_TYPE_1));
	check(one && two && foreign, "windows: %s", std::strerror(errno));
	qp.lead_to(IBV_QPS_RTS);
	/* libibverbs, ibv_bind_mw() */
	answers.expect(EINVAL, "bind_mw of type 2", bind(two.get(), IBV_ACCESS_REMOTE_READ));
	answers.expect(EPERM, "bind_mw of another domain",
	               bind(foreign.get(), IBV_ACCESS_REMOTE_READ));
	/* libmlx5, mlx5_bind_mw() */
	answers.expect(EINVAL, "bind_mw, zero-based",
	               bind(one.get(), IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED));
	answers.judge();
}

/* ---- addresses and receivers ----------------------------------------------------------------- */

void addresses(Session &s)
{
	const Device &device = s.device;
	const LoneQp rc(device, IBV_QPT_RC), ud(device, IBV_QPT_UD);
	const auto create = [&](auto change) {
		ibv_ah_attr attr = rc.attributes().ah_attr;
		change(attr);
		return AhPtr(ibv_create_ah(device.pd(), &attr));
	};
	const ibv_gid own = device.gid();
	ibv_gid group = {};
	group.raw[0] = 0xff;
	group.raw[1] = 0x0e;
	group.raw[15] = 1;
	Answers answers;

	/* uverbs, ib_uverbs_create_ah(), where libmlx5 leaves errno as it is */
	answers.refuses(EINVAL, "create_ah: port 0",
	                [&] { return create([](auto &attr) { attr.port_num = 0; }); });
	answers.refuses(EINVAL, "create_ah: port 99",
	                [&] { return create([](auto &attr) { attr.port_num = 99; }); });
	/* libmlx5, mlx5_create_ah() */
	answers.refuses(EINVAL, "create_ah: no GRH",
	                [&] { return create([](auto &attr) { attr.is_global = 0; }); });
	/* core, rdma_fill_sgid_attr() */
	answers.refuses(EINVAL, "create_ah: sgid_index",
	                [&] { return create([](auto &attr) { attr.grh.sgid_index = 255; }); });

	/* core, ib_attach_mcast(); uverbs, ib_uverbs_detach_mcast() */
	ud.lead_to(IBV_QPS_INIT);
	answers.expect(EINVAL, "attach_mcast of RC", ibv_attach_mcast(rc.get(), &group, 0));
	answers.expect(EINVAL, "attach_mcast to no group", ibv_attach_mcast(ud.get(), &own, 0));
	answers.expect(EINVAL, "detach_mcast of what is not attached",
	               ibv_detach_mcast(ud.get(), &group, 0));
	/* uverbs tells groups apart by their LIDs, which RoCE has not. A second detaching that
	 * failed would keep the kernel from ever destroying the QP. */
	const LoneQp twice(device, IBV_QPT_UD);
	twice.lead_to(IBV_QPS_INIT);
	for (const uint16_t lid : {0, 0xc001})
		answers.expect(0, "attach_mcast", ibv_attach_mcast(twice.get(), &group, lid));
	for (const uint16_t lid : {0, 0xc001})
		answers.expect(0, "detach_mcast by another LID",
		               ibv_detach_mcast(twice.get(), &group, lid));

	struct {
		ibv_flow_attr attr;
		ibv_flow_spec_eth eth;
	} flow = {};
	flow.attr.type = IBV_FLOW_ATTR_NORMAL;
	flow.attr.size = sizeof(flow);
	flow.attr.num_of_specs = 1;
	flow.attr.port = 1;
	flow.eth.type = IBV_FLOW_SPEC_ETH;
	flow.eth.size = sizeof(flow.eth);
	/* uverbs, ib_uverbs_ex_create_flow() */
	answers.refuses(EINVAL, "create_flow on RC",
	                [&] { return FlowPtr(ibv_create_flow(rc.get(), &flow.attr)); });

	/* uverbs, ib_query_port(); libmlx5, mlx5_query_rt_values() */
	ibv_port_attr port = {};
	answers.expect(EINVAL, "query_port 2", ibv_query_port(device.context(), 2, &port));
	ibv_values_ex values = {.comp_mask = kUnknown, .raw_clock = {}};
	answers.expect(EINVAL, "query_rt_values_ex: comp_mask",
	               ibv_query_rt_values_ex(device.context(), &values));
	answers.judge();
}

void receive_work_queues(Session &s)
{
	const Device &device = s.device;
	const CqPtr cq = make_cq(device, 16);
	const auto create = [&](auto change) {
		ibv_wq_init_attr init = {};
		init.wq_type = IBV_WQT_RQ;
		init.max_wr = 4;
		init.max_sge = 1;
		init.pd = device.pd();
		init.cq = cq.get();
		change(init);
		return WqPtr(ibv_create_wq(device.context(), &init));
	};
	const auto table_of = [&](ibv_wq *wq, uint32_t log_size) {
		std::vector<ibv_wq *> wqs(size_t{1} << log_size, wq);
		ibv_rwq_ind_table_init_attr init = {
		        .log_ind_tbl_size = log_size, .ind_tbl = wqs.data(), .comp_mask = 0};
		return TablePtr(ibv_create_rwq_ind_table(device.context(), &init));
	};
	Answers answers;

	/* libmlx5, create_wq() and mlx5_calc_rwq_size() */
	answers.refuses(EINVAL, "create_wq: type", [&] {
		return create([](auto &init) { init.wq_type = static_cast<ibv_wq_type>(9); });
	});
	answers.refuses(EINVAL, "create_wq: max_wr 0",
	                [&] { return create([](auto &init) { init.max_wr = 0; }); });
	answers.refuses(EINVAL, "create_wq: max_sge",
	                [&] { return create([](auto &init) { init.max_sge = kTooMany; }); });
	/* mlx5_ib, set_user_rq_size() */
	answers.refuses(EINVAL, "create_wq: max_wr",
	                [&] { return create([](auto &init) { init.max_wr = kTooMany; }); });
	/* mlx5_ib, create_rq() */
	answers.refuses(EOPNOTSUPP, "create_wq: flags", [&] {
		return create([](auto &init) {
			init.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
			init.create_flags = IBV_WQ_FLAGS_DELAY_DROP;
		});
	});

	const WqPtr wq = create([](auto &) {});
	check(wq.get(), "ibv_create_wq: %s", std::strerror(errno));
	const auto modify = [&](ibv_wq_state from, ibv_wq_state to) {
		ibv_wq_attr attr = {};
		attr.attr_mask = IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_STATE;
		attr.curr_wq_state = from;
		attr.wq_state = to;
		return ibv_modify_wq(wq.get(), &attr);
	};
	answers.expect(EINVAL, "modify_wq: no such state", modify(IBV_WQS_ERR, IBV_WQS_RESET));
	answers.expect(0, "modify_wq to RDY", modify(IBV_WQS_RESET, IBV_WQS_RDY));
	answers.expect(EINVAL, "modify_wq: left state", modify(IBV_WQS_RESET, IBV_WQS_RDY));
	/* Only the card knows whether a ready WQ has failed. */
	answers.expect(0, "modify_wq from ERR", modify(IBV_WQS_ERR, IBV_WQS_RESET));
	/* mlx5_ib_create_rwq_ind_table() */
	answers.refuses(EINVAL, "create_rwq_ind_table: size",
	                [&] { return table_of(wq.get(), 16); });

	const TablePtr table = table_of(wq.get(), 0);
	check(table.get(), "ibv_create_rwq_ind_table: %s", std::strerror(errno));
	uint8_t key[40] = {};
	const auto rss = [&](uint8_t function, uint8_t key_len) {
		ibv_qp_init_attr_ex init = {};
		init.qp_type = IBV_QPT_RAW_PACKET;
		init.comp_mask =
		        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
		init.pd = device.pd();
		init.rwq_ind_tbl = table.get();
		init.rx_hash_conf = {.rx_hash_function = function,
		                     .rx_hash_key_len = key_len,
		                     .rx_hash_key = key,
		                     .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4};
		return QpPtr(ibv_create_qp_ex(device.context(), &init));
	};
	/* mlx5_ib, create_rss_raw_qp_tir() */
	answers.refuses(EOPNOTSUPP, "create_qp_ex: hash function", [&] { return rss(0x40, 40); });
	answers.refuses(EINVAL, "create_qp_ex: hash key",
	                [&] { return rss(IBV_RX_HASH_FUNC_TOEPLITZ, 7); });
	/* libmlx5, mlx5_modify_qp() */
	const QpPtr spread = rss(IBV_RX_HASH_FUNC_TOEPLITZ, 40);
	check(spread.get(), "an RSS QP: %s", std::strerror(errno));
	ibv_qp_attr attr = {};
	attr.qp_state = IBV_QPS_INIT;
	answers.expect(EOPNOTSUPP, "modify_qp of an RSS QP",
	               ibv_modify_qp(spread.get(), &attr, IBV_QP_STATE));
	answers.judge();
}

constexpr Case kCases[] = {
        {"errno-cq", "what CQs refuse, and with which errno", completion_queues},
        {"errno-qp", "sizes, types and flags that no QP has", queue_pairs},
        {"errno-modify-qp", "steps and attributes that are illegal", modify_qp},
        {"errno-post-send", "requests that are not taken, by both interfaces", post_send},
        {"errno-post-recv", "receives that are not taken, also by an SRQ", post_recv},
        {"errno-srq", "what SRQs refuse", shared_receive_queues},
        {"errno-mr", "memory and rights of which no region is made", regions},
        {"errno-advise-mr", "advice that is refused", advice},
        {"errno-dm", "what device memory refuses", device_memory},
        {"errno-mw", "binds that are refused", windows},
        {"errno-address", "address handles, groups, flows and queries", addresses},
        {"errno-wq", "receive work queues, their tables and RSS", receive_work_queues},
};

} // namespace

std::span<const Case> errno_cases()
{
	return kCases;
}

} // namespace tern::guest
