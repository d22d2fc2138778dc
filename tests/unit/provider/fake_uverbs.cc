// SPDX-License-Identifier: GPL-2.0-or-later
#include "fake_uverbs.h"

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/ib_user_verbs.h>

#include "private_abi.h"

namespace tern::provider::test {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMemory = 64 << 20;
const dev_t kDevice = makedev(231, 192);
constexpr char kFileName[] = "tern-uverbs";

void write_file(const fs::path &path, const std::string &text)
{
	fs::create_directories(path.parent_path());
	std::ofstream(path) << text << '\n';
}

/* The response of the command as it was before it was extended. */
struct CreateQpResp {
	uint32_t qp_handle;
	uint32_t qpn;
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
	uint32_t reserved;
};
static_assert(sizeof(CreateQpResp) == sizeof(ib_uverbs_create_qp_resp));

size_t page_up(size_t n)
{
	return (n + 4095) & ~size_t{4095};
}

template <class Request>
uint32_t recvs_of(const Request &request)
{
	return request.max_recv_wr ? std::bit_ceil(request.max_recv_wr) : 1;
}

/* What the driver grants a QP. */
template <class Core, class Request>
void fill(Core &resp, const Request &request)
{
	resp.qp_handle = 14;
	resp.max_send_wr = request.max_send_wr;
	resp.max_recv_wr = request.max_recv_wr && !request.is_srq ? recvs_of(request) : 0;
	resp.max_send_sge = 4;
	resp.max_recv_sge = 4;
	resp.max_inline_data = 64;
}

} // namespace

FakeUverbs &FakeUverbs::instance()
{
	static FakeUverbs fake;
	return fake;
}

FakeUverbs::FakeUverbs()
{
	memfd_ = memfd_create(kFileName, MFD_CLOEXEC);
	if (memfd_ < 0 || ftruncate(memfd_, kMemory))
		abort();
	memory_ = static_cast<std::byte *>(
	        mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED, memfd_, 0));
	char dir[] = "/tmp/tern-sysfs-XXXXXX";
	sysfs_ = mkdtemp(dir);
	setenv("SYSFS_PATH", sysfs_.c_str(), 1);
	setenv("RDMAV_DRIVERS", TERN_PLUGIN, 1);
	setenv("IBV_SHOW_WARNINGS", "1", 1);
}

FakeUverbs::~FakeUverbs()
{
	fs::remove_all(sysfs_);
}

void FakeUverbs::reset(const std::string &modalias)
{
	const fs::path sysfs = sysfs_;
	fs::remove_all(sysfs / "class");
	write_file(sysfs / "class/infiniband_verbs/abi_version", "6");
	write_file(sysfs / "class/infiniband_verbs/uverbs0/dev", "231:192");
	write_file(sysfs / "class/infiniband_verbs/uverbs0/ibdev", "tern0");
	write_file(sysfs / "class/infiniband_verbs/uverbs0/abi_version",
	           std::to_string(TERN_UVERBS_ABI_VERSION));
	write_file(sysfs / "class/infiniband/tern0/node_type", "1: CA");
	write_file(sysfs / "class/infiniband/tern0/device/modalias", modalias);

	caps = kAllCaps;
	next_qpn = 0x100;
	next_srqn = 0x300;
	next_wqn = 0x500;
	failures_.clear();
	on_context = nullptr;
	on_cq = nullptr;
	on_resize_cq = nullptr;
	on_qp = nullptr;
	on_wq = nullptr;
	on_srq = nullptr;
	on_modify = nullptr;
	on_moderate = nullptr;
	on_query = nullptr;
	contexts = pds = mrs = cqs = qps = 0;
	ahs = srqs = xrcds = mws = groups = flows = 0;
	wqs = tables = 0;
	last_table.clear();
	last_rss = {};
	dms = 0;
	queried_state = 0;
	bad_dm_key = false;
	last_qp_pd = 0;
	last_create_flags = 0;
	writes = 0;
	used_ = 0;
	std::memset(memory_, 0, kMemory);
}

uint64_t FakeUverbs::allocate(size_t size)
{
	const uint64_t key = used_;
	used_ += page_up(size);
	if (used_ > kMemory)
		abort();
	return key;
}

uint64_t FakeUverbs::doorbell(unsigned offset) const
{
	uint64_t v;
	std::memcpy(&v, memory_ + doorbell_key_ + offset, sizeof(v));
	return v;
}

void FakeUverbs::set_clock(uint64_t ns)
{
	std::memcpy(memory_ + doorbell_key_ + hw::TERN_DB_CLOCK, &ns, sizeof(ns));
}

int FakeUverbs::mappings()
{
	std::ifstream maps("/proc/self/maps");
	std::string line;
	int n = 0;
	while (std::getline(maps, line))
		n += line.find(kFileName) != std::string::npos;
	return n - 1;
}

bool FakeUverbs::is_device_path(const char *path) const
{
	return !std::strcmp(path, "/dev/infiniband/uverbs0");
}

bool FakeUverbs::is_device(int fd) const
{
	char link[64], target[64] = {};
	std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, target, sizeof(target) - 1) > 0 && std::strstr(target, kFileName);
}

int FakeUverbs::open_device()
{
	return fcntl(memfd_, F_DUPFD_CLOEXEC, 0);
}

tern_alloc_ucontext_resp FakeUverbs::describe_context() const
{
	tern_alloc_ucontext_resp resp = {};

	resp.db_key = doorbell_key_;
	resp.db_len = 4096;
	resp.caps = caps;
	if (on_context)
		on_context(resp);
	return resp;
}

bool FakeUverbs::complete(uint32_t qpn, uint8_t opcode, uint32_t wqe_index)
{
	const std::lock_guard guard(mutex_);
	const uint32_t entries = 1u << last_cq.log_size;
	const auto *record = at<hw::tern_hw_cq_record>(last_cq.buf_key + last_cq.record_offset);
	if (cq_pi_ - record->ci.get() >= entries)
		return false;
	auto &cqe = at<hw::tern_hw_cqe>(last_cq.buf_key)[cq_pi_ & (entries - 1)];
	const uint8_t phase = cq_pi_++ & entries ? 0 : TERN_PHASE;
	cqe.wqe_index = wqe_index;
	cqe.srqn = 0;
	cqe.qpn = qpn;
	cqe.opcode = opcode;
	std::atomic_ref(cqe.phase).store(phase, std::memory_order_release);
	return true;
}

int FakeUverbs::command(std::span<const std::byte> request)
{
	const std::lock_guard guard(mutex_);
	return do_command(request);
}

int FakeUverbs::do_command(std::span<const std::byte> request)
{
	using namespace tern::private_abi;

	ib_uverbs_cmd_hdr hdr;
	std::memcpy(&hdr, request.data(), sizeof(hdr));
	const auto *body = request.data() + sizeof(hdr);
	const size_t room = hdr.out_words * 4u;
	writes++;

	if (hdr.in_words * 4u != request.size() && !(hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED))
		return EINVAL;
	if (const auto f = failures_.find(hdr.command & 0xff); f != failures_.end()) {
		const int error = f->second;
		failures_.erase(f);
		return error;
	}

	switch (hdr.command) {
	case IB_USER_VERBS_CMD_GET_CONTEXT: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_get_context *>(body);
		doorbell_key_ = allocate(4096);
		std::memset(memory_ + doorbell_key_, 0xff, 4096);
		Response<GetContextResp, tern_alloc_ucontext_resp> resp = {};
		if (room != sizeof(resp))
			return ENOSPC;
		resp.core.async_fd = static_cast<uint32_t>(open("/dev/null", O_RDONLY));
		resp.core.num_comp_vectors = 2;
		resp.tern = describe_context();
		respond(cmd.response, resp, room);
		contexts++;
		return 0;
	}
	case IB_USER_VERBS_CMD_QUERY_DEVICE | IB_USER_VERBS_CMD_FLAG_EXTENDED: {
		ib_uverbs_ex_cmd_hdr ex;
		std::memcpy(&ex, body, sizeof(ex));
		ib_uverbs_ex_query_device_resp resp = {};
		resp.base.fw_ver = 3 << 16 | 14;
		resp.base.max_qp = 77;
		resp.rss_caps.supported_qpts = 1u << IBV_QPT_RAW_PACKET;
		resp.response_length = sizeof(resp);
		respond(ex.response, resp, hdr.out_words * 8u);
		return 0;
	}
	case IB_USER_VERBS_CMD_QUERY_DEVICE: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_query_device *>(body);
		ib_uverbs_query_device_resp resp = {};
		resp.fw_ver = 3 << 16 | 14;
		resp.max_qp = 77;
		respond(cmd.response, resp, room);
		return 0;
	}
	case IB_USER_VERBS_CMD_QUERY_PORT: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_query_port *>(body);
		ib_uverbs_query_port_resp resp = {};
		resp.gid_tbl_len = cmd.port_num + 100;
		respond(cmd.response, resp, room);
		return 0;
	}
	case IB_USER_VERBS_CMD_ALLOC_PD: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_alloc_pd *>(body);
		Response<AllocPdResp, tern_alloc_pd_resp> resp = {};
		if (room != sizeof(resp))
			return ENOSPC;
		resp.core.pd_handle = kPdHandle;
		resp.tern.pdn = 1;
		respond(cmd.response, resp, room);
		pds++;
		return 0;
	}
	case IB_USER_VERBS_CMD_DEALLOC_PD:
		pds--;
		return 0;
	case IB_USER_VERBS_CMD_REG_MR: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_reg_mr *>(body);
		const uint32_t resp[3] = {kMrHandle, kMrKey, kMrKey};
		respond(cmd.response, resp, room);
		mrs++;
		return 0;
	}
	case IB_USER_VERBS_CMD_REREG_MR: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_rereg_mr *>(body);
		last_rereg = {cmd.flags, cmd.access_flags, cmd.start, cmd.hca_va};
		respond(cmd.response, ib_uverbs_rereg_mr_resp{kMrKey, kMrKey}, room);
		return 0;
	}
	case IB_USER_VERBS_CMD_DEREG_MR:
		mrs--;
		return 0;
	case IB_USER_VERBS_CMD_CREATE_CQ: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_create_cq *>(body);
		Response<CreateCqResp, tern_create_cq_resp> resp = {};
		if (room != sizeof(resp))
			return ENOSPC;
		const uint32_t entries = std::bit_ceil(cmd.cqe);
		const size_t ring = entries * sizeof(hw::tern_hw_cqe);
		resp.core.cq_handle = 13;
		resp.core.cqe = entries;
		resp.tern.buf_len = static_cast<uint32_t>(page_up(ring + 64));
		resp.tern.buf_key = allocate(resp.tern.buf_len);
		resp.tern.record_offset = static_cast<uint32_t>(ring);
		resp.tern.cqn = 0x40 + static_cast<uint32_t>(cqs);
		resp.tern.log_size = static_cast<uint32_t>(std::countr_zero(entries));
		last_cq = resp.tern;
		cq_pi_ = 0;
		if (on_cq)
			on_cq(resp.tern);
		respond(cmd.response, resp, room);
		cqs++;
		return 0;
	}
	case IB_USER_VERBS_CMD_DESTROY_CQ: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_destroy_cq *>(body);
		respond(cmd.response, ib_uverbs_destroy_cq_resp{}, room);
		cqs--;
		return 0;
	}
	case IB_USER_VERBS_CMD_CREATE_QP: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_create_qp *>(body);
		Response<test::CreateQpResp, tern_create_qp_resp> resp = {};
		if (room != sizeof(resp))
			return ENOSPC;
		fill(resp.core, cmd);
		resp.core.qpn = next_qpn;
		resp.tern = make_qp(cmd);
		respond(cmd.response, resp, room);
		return 0;
	}
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_QP: {
		ib_uverbs_ex_cmd_hdr ex;
		std::memcpy(&ex, body, sizeof(ex));
		const auto &cmd =
		        *reinterpret_cast<const ib_uverbs_ex_create_qp *>(body + sizeof(ex));
		Response<private_abi::CreateQpResp, tern_create_qp_resp> resp = {};
		if (cmd.qp_type == IBV_QPT_XRC_RECV && cmd.is_srq)
			return EOPNOTSUPP;
		last_create_flags = cmd.create_flags;
		if (ex.provider_in_words * 8u == sizeof(last_rss))
			std::memcpy(&last_rss, body + sizeof(ex) + sizeof(cmd), sizeof(last_rss));
		fill(resp.core, cmd);
		resp.core.qpn = next_qpn;
		resp.core.response_length = sizeof(resp.core);
		resp.tern = make_qp(cmd);
		respond(ex.response, resp, (hdr.out_words + ex.provider_out_words) * 8u);
		return 0;
	}
	case IB_USER_VERBS_CMD_QUERY_QP: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_query_qp *>(body);
		ib_uverbs_query_qp_resp resp = {};
		resp.sq_psn = 0x1234;
		resp.qp_state = queried_state;
		respond(cmd.response, resp, room);
		if (on_query)
			on_query();
		return 0;
	}
	case IB_USER_VERBS_CMD_MODIFY_QP:
		if (on_modify)
			on_modify();
		return 0;
	case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP: {
		ib_uverbs_ex_cmd_hdr ex;
		std::memcpy(&ex, body, sizeof(ex));
		std::memcpy(&last_modify, body + sizeof(ex), sizeof(last_modify));
		if (ex.provider_in_words * 8u != sizeof(last_rate))
			return EINVAL;
		std::memcpy(&last_rate, body + sizeof(ex) + sizeof(last_modify), sizeof(last_rate));
		ib_uverbs_ex_modify_qp_resp resp = {};
		resp.response_length = sizeof(resp);
		respond(ex.response, resp, hdr.out_words * 8u);
		return 0;
	}
	case IB_USER_VERBS_CMD_DESTROY_QP: {
		const auto &cmd = *reinterpret_cast<const ib_uverbs_destroy_qp *>(body);
		respond(cmd.response, ib_uverbs_destroy_qp_resp{}, room);
		qps--;
		return 0;
	}
	default:
		return command_of_service(hdr.command, body, room);
	}
}

template <class Request>
tern_create_qp_resp FakeUverbs::make_qp(const Request &request)
{
	tern_create_qp_resp resp = {};

	resp.qpn = next_qpn++;
	last_qp_pd = request.pd_handle;
	if (request.qp_type != IBV_QPT_XRC_RECV && request.max_send_wr) {
		const uint32_t blocks = std::bit_ceil(request.max_send_wr * 2);
		const bool has_rq = !request.is_srq && request.qp_type != IBV_QPT_XRC_SEND;
		const uint32_t recvs = has_rq ? recvs_of(request) : 0;
		const uint32_t sq_size = blocks * 64, rq_size = recvs * 64;
		resp.buf_len = static_cast<uint32_t>(page_up(sq_size + rq_size + 64));
		resp.buf_key = allocate(resp.buf_len);
		resp.rq_offset = sq_size;
		resp.record_offset = sq_size + rq_size;
		resp.sq_log_size = static_cast<uint8_t>(std::countr_zero(blocks));
		if (has_rq) {
			resp.rq_log_size = static_cast<uint8_t>(std::countr_zero(recvs));
			resp.rq_log_stride = 6;
		}
	}
	last_qp = resp;
	if (on_qp)
		on_qp(resp);
	qps++;
	return resp;
}

} // namespace tern::provider::test

/* ---- before libc's ---------------------------------------------------------------- */

using tern::provider::test::FakeUverbs;

namespace {

template <class Function>
Function *next(const char *name)
{
	return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

void make_character_device(struct stat *st)
{
	*st = {};
	st->st_mode = S_IFCHR | 0600;
	st->st_rdev = tern::provider::test::kDevice;
}

} // namespace

extern "C" {

int open(const char *path, int flags, ...)
{
	if (FakeUverbs::instance().is_device_path(path))
		return FakeUverbs::instance().open_device();
	va_list args;
	va_start(args, flags);
	const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return next<int(const char *, int, ...)>("open")(path, flags, mode);
}

int stat(const char *path, struct stat *st)
{
	if (FakeUverbs::instance().is_device_path(path)) {
		make_character_device(st);
		return 0;
	}
	return next<int(const char *, struct stat *)>("stat")(path, st);
}

int fstat(int fd, struct stat *st)
{
	if (FakeUverbs::instance().is_device(fd)) {
		make_character_device(st);
		return 0;
	}
	return next<int(int, struct stat *)>("fstat")(fd, st);
}

/* Without RDMA netlink libibverbs reads sysfs, where we can put a card. */
int socket(int domain, int type, int protocol) noexcept
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return next<int(int, int, int)>("socket")(domain, type, protocol);
}

ssize_t write(int fd, const void *data, size_t size)
{
	if (fd > 2 && FakeUverbs::instance().is_device(fd)) {
		const int error = FakeUverbs::instance().command(
		        {static_cast<const std::byte *>(data), size});
		if (!error)
			return static_cast<ssize_t>(size);
		errno = error;
		return -1;
	}
	return next<ssize_t(int, const void *, size_t)>("write")(fd, data, size);
}
}
