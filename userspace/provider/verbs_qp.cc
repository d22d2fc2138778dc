// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs_qp.h"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "context.h"
#include "datapath/work_request.h"
#include "rdma/tern-abi.h"
#include "verbs.h"
#include "verbs_cq.h"
#include "verbs_object.h"

namespace tern::provider {

using namespace tern::private_abi;

namespace {

using CreateQpResponse = Response<CreateQpResp, tern_create_qp_resp>;
static_assert(CreateQpResponse::kPacked);

/* The command for an RSS QP; other QPs have no driver part. */
struct CreateRssQpCmd {
	CreateQpCmd qp;
	tern_create_rss_qp_cmd tern;
};
static_assert(offsetof(CreateRssQpCmd, tern) == sizeof(CreateQpCmd));

/* The driver part has the attributes of a rate limit that uverbs has no field for. */
struct ModifyRateCmd {
	ModifyQpExCmd qp;
	tern_modify_qp_cmd tern;
};
static_assert(offsetof(ModifyRateCmd, tern) == sizeof(ModifyQpExCmd));

constexpr bool has_send_queue(Service service)
{
	return service != Service::kXrcRecv && service != Service::kRss;
}

constexpr bool can_receive(Service service)
{
	return has_send_queue(service) && service != Service::kXrcSend;
}

CompletionQueue *queue_of(ibv_cq *cq)
{
	return cq ? &Cq::of(cq)->queue : nullptr;
}

/*
 * Locks both. Holds neither while it waits for the other: a program may poll either CQ within a
 * poll of the other one.
 */
void lock_both(HeldSpinlock *first, HeldSpinlock *second)
{
	first->lock();
	while (!second->try_lock()) {
		first->unlock();
		std::swap(first, second);
		first->lock();
	}
}

/* Holds the locks of the CQs of a QP with queues. */
class QpCqs {
public:
	explicit QpCqs(const Qp &qp)
	        : send(queue_of(qp.verbs.qp.send_cq)),
	          recv(can_receive(qp.service) ? queue_of(qp.verbs.qp.recv_cq) : send), qp_(qp)
	{
		if (recv != send)
			lock_both(&send->lock(), &recv->lock());
		else
			send->lock().lock();
	}
	~QpCqs()
	{
		if (recv != send)
			recv->lock().unlock();
		send->lock().unlock();
	}
	QpCqs(const QpCqs &) = delete;
	QpCqs &operator=(const QpCqs &) = delete;

	/* Removes the unpolled CQEs of the QP, in those CQs that @match(cq) accepts. */
	template <class Match>
	void drop_if(Match match) const
	{
		const uint32_t qpn = qp_.verbs.qp.qp_num;

		if (match(recv))
			recv->drop_qp(qpn);
		if (send != recv && match(send))
			send->drop_qp(qpn);
	}
	void drop() const
	{
		drop_if([](const CompletionQueue *) { return true; });
	}

	CompletionQueue *const send;
	CompletionQueue *const recv; /* equal to send if the QP cannot receive */

private:
	const Qp &qp_;
};

/* Attaches the receive queue, which may have no entries. Returns 0 or an errno. */
int init_rq(Qp &qp, const Context &context, const tern_create_qp_resp &resp, const ibv_qp_cap &cap)
{
	const auto ring = qp.mapping.slice(
	        resp.rq_offset, uint64_t{1} << ((resp.rq_log_size + resp.rq_log_stride) & 63));

	qp.has_rq = can_receive(qp.service) && !qp.srq() && cap.max_recv_wr && resp.rq_log_stride;
	return qp.rq.init({
	        .ring = qp.has_rq ? ring : std::span<std::byte>(),
	        .record = qp.record,
	        .device = context.device_name(),
	        .qpn = resp.qpn,
	        .entries = qp.has_rq ? 1u << (resp.rq_log_size & 31) : 0,
	        .log_stride = resp.rq_log_stride,
	        .max_sge = cap.max_recv_sge,
	        .allocator = qp.domain.allocator(),
	});
}

/* Maps the buffer and attaches the queues to it. Returns 0 or an errno. */
int map_queues(Qp &qp, Context &context, const tern_create_qp_resp &resp,
               const ibv_qp_init_attr_ex &attr)
{
	if (const int err = qp.mapping.map(context.verbs.context.cmd_fd, resp.buf_key, resp.buf_len,
	                                   PROT_READ | PROT_WRITE))
		return err;

	const auto sq_ring =
	        qp.mapping.slice(0, uint64_t{hw::TERN_SQ_BLOCK} << (resp.sq_log_size & 31));
	auto *record = qp.mapping.at<hw::tern_hw_qp_record>(resp.record_offset);
	if (sq_ring.empty() || !record)
		return EPROTO;

	qp.record = QpRecord(record);
	if (const int err = init_rq(qp, context, resp, attr.cap))
		return err;
	return qp.sq.init({
	        .ring = sq_ring,
	        .record = qp.record,
	        .doorbells = context.doorbell_page(),
	        .qpn = resp.qpn,
	        .device = context.device_name(),
	        .max_wr = attr.cap.max_send_wr,
	        .max_sge = attr.cap.max_send_sge,
	        .max_inline = attr.cap.max_inline_data,
	        .service = qp.service,
	        .ops = send_ops_of(qp.service, context.state.caps),
	        .shadow_doorbell = context.has(TERN_CAP_SHADOW_DB),
	        .signal_all = attr.sq_sig_all != 0,
	        .allocator = qp.domain.allocator(),
	});
}

/*
 * Inserts the QP into the table. First removes the CQEs of an earlier QP with this number: the
 * new QP has no CQE yet.
 */
int add_to_table(Qp &qp, Context &context)
{
	const uint32_t qpn = qp.verbs.qp.qp_num;

	if (!context.state.qps.reserve(qpn))
		return ENOMEM;
	const QpCqs cqs(qp);
	cqs.drop();
	context.state.qps.insert(qpn, {&qp.sq, cqs.send}, {qp.has_rq ? &qp.rq : nullptr, cqs.recv},
	                         {qp.srq(), cqs.recv});
	return 0;
}

/*
 * Removes a QP from the table after the kernel has destroyed it. The kernel may have reused the
 * number. If the table already has a new QP of this number, add_to_table() of the new QP has
 * removed the CQEs of the old QP in the CQs that both use, and all CQEs there belong to the new
 * QP. In its other CQs the old QP still has CQEs, which this function removes. It does so while the
 * table has the QP, as drop_qp() needs that.
 */
void remove_from_table(Qp &qp, Context &context)
{
	QpTable &qps = context.state.qps;
	const uint32_t qpn = qp.verbs.qp.qp_num;
	const QpCqs cqs(qp);
	const bool is_newest = qps.find<SendQueue>(qpn, cqs.send) == &qp.sq;

	cqs.drop_if(
	        [&](const CompletionQueue *cq) { return is_newest || !qps.completes_to(qpn, cq); });
	qps.remove(qpn, &qp.sq);
}

/*
 * Opens the queues that take requests in @state (IBA 10.3.1). Only RESET closes them again, so the
 * order in which two threads open them does not matter.
 *
 * libibverbs' state of the QP cannot decide this at each post: ibv_query_qp() overwrites it with
 * what the kernel read, perhaps before another thread changed the state. open_in_error() is for the
 * transition that the card makes.
 */
void open_queues(Qp &qp, ibv_qp_state state)
{
	if (state >= IBV_QPS_INIT && can_receive(qp.service) && !qp.srq())
		qp.rq.open();
	if (state >= IBV_QPS_RTS)
		qp.sq.open();
}

struct WereOpen {
	bool sq;
	bool rq;
};

/*
 * Closes the queues of a QP before the transition to RESET, and returns which were open. A list
 * that another thread posts meanwhile is complete before, or is refused: if its doorbell came after
 * the card has set its index to 0, the card would take it for the index of the next WQEs.
 */
WereOpen close_queues(Qp &qp)
{
	const std::lock_guard sq_guard(qp.sq.lock());
	const std::lock_guard rq_guard(qp.rq.lock());
	const std::lock_guard resets_guard(qp.resets_lock);

	qp.resets_begun++;
	return {.sq = qp.sq.close(), .rq = qp.rq.close()};
}

/* Opens what close_queues() has closed, because the transition to RESET failed. */
void reopen_queues(Qp &qp, WereOpen were_open)
{
	const std::lock_guard resets_guard(qp.resets_lock);

	qp.resets_ended++;
	if (were_open.sq)
		qp.sq.open();
	if (were_open.rq)
		qp.rq.open();
}

/*
 * Empties the queues of a QP after the transition to RESET. Not before it: the command can fail,
 * and the card reads the record in other states. The card has reset sq_event.
 *
 * Releases the CQs before it locks the queues, as a program may post within a poll. The card writes
 * no CQE in RESET, so once the CQEs are dropped, no poller completes requests of the queues.
 */
void reset_queues(Qp &qp)
{
	QpCqs(qp).drop();

	const std::lock_guard sq_guard(qp.sq.lock());
	const std::lock_guard rq_guard(qp.rq.lock());
	const std::lock_guard resets_guard(qp.resets_lock);

	qp.resets_ended++;
	qp.sq.reset();
	qp.rq.reset();
	qp.record.clear();
}

uint32_t resets_ended(Qp &qp)
{
	const std::lock_guard resets_guard(qp.resets_lock);

	return qp.resets_ended;
}

/*
 * Opens the send queue of a QP that a query has found in ERR. The card can move a QP from RTR
 * to ERR, where requests are flushed (IBA 10.3.1). @resets had ended before the query. Only RESET
 * leads out of ERR, so the QP is still there unless a transition to RESET was in progress by then,
 * or has begun since. The lock of the queue is not taken: a program may query within a list of
 * ibv_wr_*.
 */
void open_in_error(Qp &qp, uint32_t resets)
{
	const std::lock_guard resets_guard(qp.resets_lock);

	if (qp.resets_begun == resets)
		qp.sq.open();
}

constexpr uint32_t kRssMask = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;

/* The service that @attr requests: RSS if it has an indirection table or a hash. */
std::optional<Service> requested_service(const ibv_qp_init_attr_ex &attr, const Context &context)
{
	const std::optional<Service> service = service_of(attr.qp_type, context.state.caps);

	if (!(attr.comp_mask & kRssMask))
		return service;
	if (service == Service::kRaw && context.has(TERN_CAP_RSS))
		return Service::kRss;
	return std::nullopt;
}

/* An RSS QP has no queues; libibverbs has checked the attributes of a receive queue. */
int check_rss(const ibv_qp_init_attr_ex &attr)
{
	const ibv_rx_hash_conf &hash = attr.rx_hash_conf;

	if ((attr.comp_mask & kRssMask) != kRssMask || !attr.rwq_ind_tbl || attr.send_cq ||
	    attr.cap.max_send_wr)
		return EINVAL;
	if (hash.rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ ||
	    hash.rx_hash_fields_mask & ~uint64_t{kHashFields})
		return EOPNOTSUPP;
	return hash.rx_hash_key_len == hw::TERN_HASH_KEY_SIZE && hash.rx_hash_key ? 0 : EINVAL;
}

/* Checks @attr for a QP of @service. Returns 0 or an errno. */
int check(const ibv_qp_init_attr_ex &attr, Service service, const Context &context)
{
	constexpr uint32_t kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
	                            IBV_QP_INIT_ATTR_CREATE_FLAGS |
	                            IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | kRssMask;

	if (attr.comp_mask & ~kKnown)
		return EOPNOTSUPP;
	if (service == Service::kRss)
		return check_rss(attr);
	if (service == Service::kXrcRecv)
		return !attr.srq || Srq::of(attr.srq)->is_xrc() ? 0 : EINVAL;
	if (attr.srq &&
	    (!context.has(TERN_CAP_SRQ) || !can_receive(service) || service == Service::kRaw))
		return EOPNOTSUPP;
	if ((has_send_queue(service) && !attr.send_cq) || (can_receive(service) && !attr.recv_cq))
		return EINVAL;
	return 0;
}

tern_create_rss_qp_cmd rss_cmd(const ibv_rx_hash_conf &hash)
{
	tern_create_rss_qp_cmd cmd = {};

	cmd.hash_fields = hash.rx_hash_fields_mask;
	cmd.hash_function = hash.rx_hash_function;
	cmd.key_len = hash.rx_hash_key_len;
	std::memcpy(cmd.key, hash.rx_hash_key, sizeof(cmd.key));
	return cmd;
}

/* Maps the queues of a new QP and inserts it into the table. Returns 0 or an errno. */
int set_up(Qp &qp, Context &context, const tern_create_qp_resp &resp,
           const ibv_qp_init_attr_ex &attr)
{
	if (!has_send_queue(qp.service))
		return 0;
	const int err = map_queues(qp, context, resp, attr);
	return err ? err : add_to_table(qp, context);
}

/* Checks @attr and applies what the driver does not see. Returns 0 or an errno. */
int configure(Qp &qp, const ibv_qp_init_attr_ex &attr, const Context &context)
{
	const std::optional<Service> service = requested_service(attr, context);
	const uint64_t send_ops =
	        attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr.send_ops_flags : 0;

	if (!service)
		return EOPNOTSUPP;
	if (const int err = check(attr, *service, context))
		return err;
	qp.service = *service;
	if (attr.comp_mask & IBV_QP_INIT_ATTR_PD)
		qp.domain = DomainUse(attr.pd);
	if (qp.domain.is_single_threaded()) {
		qp.sq.lock().set_single_threaded();
		qp.rq.lock().set_single_threaded();
	}
	return set_send_ops(qp, send_ops, send_ops_of(*service, context.state.caps));
}

/* Creates @qp in the kernel and sets up its queues. Returns 0 or an errno. */
int create(Qp &qp, Context &context, ibv_qp_init_attr_ex &attr)
{
	CreateRssQpCmd cmd = {};
	CreateQpResponse resp = {};
	const bool rss = qp.service == Service::kRss;
	ibv_qp_init_attr_ex request = attr;

	if (rss)
		cmd.tern = rss_cmd(attr.rx_hash_conf);
	/* A packet names the XRC SRQ that it is for, so the driver takes none with a target QP. */
	if (qp.service == Service::kXrcRecv)
		request.srq = nullptr;
	if (const int err = ibv_cmd_create_qp_ex2(&context.verbs.context, &qp.verbs, &request,
	                                          &cmd.qp, rss ? sizeof(cmd) : sizeof(cmd.qp),
	                                          &resp, sizeof(resp), nullptr))
		return err;
	attr.cap = request.cap;
	qp.verbs.qp.srq = attr.srq;
	if (attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		qp.verbs.comp_mask |= kVerbsQpEx;
	const int err = set_up(qp, context, resp.tern, attr);
	if (err)
		ibv_cmd_destroy_qp(&qp.verbs.qp);
	return err;
}

/* Only the extended command has a field for a rate limit. */
int modify(ibv_qp *qp, ibv_qp_attr *attr, int attr_mask, const tern_modify_qp_cmd &rate)
{
	if (!(attr_mask & IBV_QP_RATE_LIMIT)) {
		ModifyQpCmd cmd = {};

		return ibv_cmd_modify_qp(qp, attr, attr_mask, &cmd, sizeof(cmd));
	}
	ModifyRateCmd cmd = {};
	ib_uverbs_ex_modify_qp_resp resp = {};

	cmd.tern = rate;
	return ibv_cmd_modify_qp_ex(qp, attr, attr_mask, &cmd.qp, sizeof(cmd), &resp, sizeof(resp));
}

/* Moves a QP with queues to RESET. */
int modify_to_reset(Qp &qp, ibv_qp_attr *attr, int attr_mask)
{
	const WereOpen were_open = close_queues(qp);
	const int err = modify(&qp.verbs.qp, attr, attr_mask, {});

	if (err)
		reopen_queues(qp, were_open);
	else
		reset_queues(qp);
	return err;
}

/* Moves a QP with queues to any other state. */
int modify_to_other(Qp &qp, ibv_qp_attr *attr, int attr_mask)
{
	const int err = modify(&qp.verbs.qp, attr, attr_mask, {});

	if (!err)
		open_queues(qp, attr->qp_state);
	return err;
}

} // namespace

ibv_qp *create_qp_ex(ibv_context *ibv, ibv_qp_init_attr_ex *attr)
{
	return make_object<ibv_qp, Qp>([&](Qp &qp) {
		Context &context = *Context::of(ibv);
		const int err = configure(qp, *attr, context);

		return err ? err : create(qp, context, *attr);
	});
}

ibv_qp *create_qp(ibv_pd *pd, ibv_qp_init_attr *attr)
{
	ibv_qp_init_attr_ex ex = {};

	ex.qp_context = attr->qp_context;
	ex.send_cq = attr->send_cq;
	ex.recv_cq = attr->recv_cq;
	ex.srq = attr->srq;
	ex.cap = attr->cap;
	ex.qp_type = attr->qp_type;
	ex.sq_sig_all = attr->sq_sig_all;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	ibv_qp *qp = create_qp_ex(pd->context, &ex);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/* Opens an XRC target QP, which another process may have created. */
ibv_qp *open_qp(ibv_context *context, ibv_qp_open_attr *attr)
{
	return make_object<ibv_qp, Qp>([&](Qp &qp) {
		OpenQpCmd cmd = {};
		CreateQpResp resp = {};

		if (!Context::of(context)->has(TERN_CAP_XRC))
			return EOPNOTSUPP;
		qp.service = Service::kXrcRecv;
		return ibv_cmd_open_qp(context, &qp.verbs, sizeof(qp.verbs), attr, &cmd,
		                       sizeof(cmd), &resp, sizeof(ib_uverbs_create_qp_resp));
	});
}

int modify_qp(ibv_qp *ibv, ibv_qp_attr *attr, int attr_mask)
{
	Qp &qp = *Qp::of(ibv);

	if (!(attr_mask & IBV_QP_STATE) || !has_send_queue(qp.service))
		return modify(ibv, attr, attr_mask, {});
	if (attr->qp_state == IBV_QPS_RESET)
		return modify_to_reset(qp, attr, attr_mask);
	return modify_to_other(qp, attr, attr_mask);
}

int modify_qp_rate_limit(ibv_qp *qp, ibv_qp_rate_limit_attr *limit)
{
	ibv_qp_attr attr = {};
	tern_modify_qp_cmd rest = {};

	if (limit->comp_mask ||
	    (!limit->rate_limit && (limit->max_burst_sz || limit->typical_pkt_sz)))
		return EINVAL;
	attr.rate_limit = limit->rate_limit;
	rest.max_burst_sz = limit->max_burst_sz;
	rest.typical_pkt_sz = limit->typical_pkt_sz;
	return modify(qp, &attr, IBV_QP_RATE_LIMIT, rest);
}

int query_qp(ibv_qp *ibv, ibv_qp_attr *attr, int attr_mask, ibv_qp_init_attr *init_attr)
{
	Qp &qp = *Qp::of(ibv);
	QueryQpCmd cmd = {};
	const uint32_t resets = resets_ended(qp);
	const int err = ibv_cmd_query_qp(ibv, attr, attr_mask, init_attr, &cmd, sizeof(cmd));

	if (!err && attr_mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_ERR &&
	    has_send_queue(qp.service))
		open_in_error(qp, resets);
	return err;
}

int destroy_qp(ibv_qp *ibv)
{
	Qp *qp = Qp::of(ibv);

	if (const int err = ibv_cmd_destroy_qp(ibv))
		return err;
	if (has_send_queue(qp->service))
		remove_from_table(*qp, *Context::of(ibv->context));
	Owned<Qp>{qp};
	return 0;
}

int post_send(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad_wr)
{
	return post_send_list(Qp::of(qp)->sq, wr, bad_wr);
}

int post_recv(ibv_qp *qp, ibv_recv_wr *wr, ibv_recv_wr **bad_wr)
{
	return post_recv_list(Qp::of(qp)->rq, wr, bad_wr);
}

} // namespace tern::provider
