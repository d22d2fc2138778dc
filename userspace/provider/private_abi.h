// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The private interface between libibverbs and its providers, as far as this provider uses it,
 * and all that differs between the versions of rdma-core that it can be built with.
 *
 * libibverbs exports the interface as IBVERBS_PRIVATE_<n>, the build passes n as
 * TERN_IBVERBS_PRIVATE, and the loader refuses a library that was built for another n:
 *
 *   34   rdma-core 34 to 56. 34 to 39 have a shorter table of verbs, so that device.cc makes the
 *        loader refuse them; 45 changed a layout, which device.cc compares.
 *   65   rdma-core 65. Its changes are marked by TERN_SINCE_65 and listed there.
 *
 * tests/unit/provider/private_abi_test.cc compares these declarations with the installed library.
 */
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/types.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

/*
 * rdma-core 65 has 17 verbs more in the table; two functions take one more argument each,
 * ibv_cmd_get_context() in the middle, ibv_cmd_create_qp_ex2() at the end.
 */
#if TERN_IBVERBS_PRIVATE == 65
#define TERN_SINCE_65(...) __VA_ARGS__
#elif TERN_IBVERBS_PRIVATE == 34
#define TERN_SINCE_65(...)
#else
#error "private_version.cmake knows this version, private_abi.h does not"
#endif

/* The name of a function that contains the version. */
#define TERN_PASTE(name, version) name##version
#define TERN_VERSIONED(name, version) TERN_PASTE(name, version)

namespace tern::private_abi {

/* ---- devices ------------------------------------------------------------------ */

struct SysfsDevice; /* what libibverbs found in sysfs; opaque */
struct VerbsDevice;

struct ListNode {
	ListNode *next, *prev;
};

enum MatchKind : uint8_t {
	kMatchEnd = 0,
	kMatchPci = 1,
};

/** A device that the provider supports; the table ends with kMatchEnd. */
struct MatchEntry {
	void *driver_data;
	union {
		const char *modalias;
		uint64_t driver_id;
	} u;
	uint16_t vendor;
	uint16_t device;
	uint8_t kind;
};

/** What a provider registers when it is loaded. */
struct DeviceOps {
	const char *name;
	uint32_t min_abi_version; /* of the kernel driver, both inclusive */
	uint32_t max_abi_version;
	const MatchEntry *match_table;
	const DeviceOps **static_providers;
	bool (*match_device)(SysfsDevice *sysfs);
	/* Takes ownership of cmd_fd, also on failure. */
	verbs_context *(*alloc_context)(ibv_device *device, int cmd_fd, void *private_data);
	verbs_context *(*import_context)(ibv_device *device, int cmd_fd);
	VerbsDevice *(*alloc_device)(SysfsDevice *sysfs);
	void (*uninit_device)(VerbsDevice *device);
};

struct VerbsDevice {
	ibv_device device;
	const DeviceOps *ops;
	int refcount; /* atomic, used by libibverbs */
	ListNode entry;
	SysfsDevice *sysfs;
	uint64_t core_support;
};

/* ---- objects -------------------------------------------------------------------- */

struct VerbsMr {
	ibv_mr mr;
	int type; /* kNullMr, or set by the ibv_cmd_* functions */
	int access;
};

/* The type of an ibv_mr that the kernel does not know. */
constexpr int kNullMr = 1;

struct VerbsDm {
	ibv_dm dm;
	uint32_t handle; /* set by ibv_cmd_alloc_dm() */
};

struct VerbsCounters {
	ibv_counters counters;
	uint32_t handle; /* set by ibv_cmd_create_counters() */
};

struct VerbsXrcd {
	ibv_xrcd xrcd;
	uint32_t comp_mask;
	uint32_t handle;
};

struct VerbsSrq {
	ibv_srq srq;
	ibv_srq_type srq_type; /* this and the rest: set by ibv_cmd_create_srq_ex() */
	VerbsXrcd *xrcd;
	ibv_cq *cq;
	uint32_t srq_num; /* of XRC SRQs only */
};

struct VerbsQp {
	union {
		ibv_qp qp;
		ibv_qp_ex qp_ex;
	};
	uint32_t comp_mask;
	VerbsXrcd *xrcd;
};

enum VerbsQpMask : uint32_t {
	kVerbsQpEx = 1u << 1, /* qp_ex is valid */
};

/* rdma-core 45 appended wr_flush() to ibv_qp_ex, which moves the rest of VerbsQp by 8 bytes. */
template <class QpEx>
constexpr bool kHasWrFlush = requires(QpEx qp)
{
	qp.wr_flush;
};
constexpr const char *kRdmaCore = TERN_IBVERBS_PRIVATE == 65 ? "65"
                                  : kHasWrFlush<ibv_qp_ex>   ? "45 to 56"
                                                             : "40 to 44";

struct VerbsCq {
	union {
		ibv_cq cq;
		ibv_cq_ex cq_ex;
	};
};

/* ---- the verbs of a context ------------------------------------------------------- */

using UnusedOp = void (*)();

/** The verbs that a provider can implement, in alphabetical order. */
struct ContextOps {
	int (*advise_mr)(ibv_pd *pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge *sges,
	                 uint32_t count);
	TERN_SINCE_65(UnusedOp alloc_buf;)
	ibv_dm *(*alloc_dm)(ibv_context *context, ibv_alloc_dm_attr *attr);
	TERN_SINCE_65(UnusedOp alloc_dmah;)
	ibv_mw *(*alloc_mw)(ibv_pd *pd, ibv_mw_type type);
	ibv_mr *(*alloc_null_mr)(ibv_pd *pd);
	ibv_pd *(*alloc_parent_domain)(ibv_context *context, ibv_parent_domain_init_attr *attr);
	ibv_pd *(*alloc_pd)(ibv_context *context);
	ibv_td *(*alloc_td)(ibv_context *context, ibv_td_init_attr *attr);
	UnusedOp async_event;
	int (*attach_counters_point_flow)(ibv_counters *counters, ibv_counter_attach_attr *attr,
	                                  ibv_flow *flow);
	int (*attach_mcast)(ibv_qp *qp, const ibv_gid *gid, uint16_t lid);
	int (*bind_mw)(ibv_qp *qp, ibv_mw *mw, ibv_mw_bind *bind);
	int (*close_xrcd)(ibv_xrcd *xrcd);
	UnusedOp cq_event;
	ibv_ah *(*create_ah)(ibv_pd *pd, ibv_ah_attr *attr);
	TERN_SINCE_65(ibv_comp_cntr *(*create_comp_cntr)(ibv_context *context,
	                                                 ibv_comp_cntr_init_attr *attr);)
	ibv_counters *(*create_counters)(ibv_context *context, ibv_counters_init_attr *attr);
	ibv_cq *(*create_cq)(ibv_context *context, int cqe, ibv_comp_channel *channel,
	                     int comp_vector);
	ibv_cq_ex *(*create_cq_ex)(ibv_context *context, ibv_cq_init_attr_ex *attr);
	ibv_flow *(*create_flow)(ibv_qp *qp, ibv_flow_attr *attr);
	UnusedOp create_flow_action_esp;
	ibv_qp *(*create_qp)(ibv_pd *pd, ibv_qp_init_attr *attr);
	ibv_qp *(*create_qp_ex)(ibv_context *context, ibv_qp_init_attr_ex *attr);
	ibv_rwq_ind_table *(*create_rwq_ind_table)(ibv_context *context,
	                                           ibv_rwq_ind_table_init_attr *attr);
	ibv_srq *(*create_srq)(ibv_pd *pd, ibv_srq_init_attr *attr);
	ibv_srq *(*create_srq_ex)(ibv_context *context, ibv_srq_init_attr_ex *attr);
	ibv_wq *(*create_wq)(ibv_context *context, ibv_wq_init_attr *attr);
	TERN_SINCE_65(UnusedOp dealloc_dmah;)
	int (*dealloc_mw)(ibv_mw *mw);
	int (*dealloc_pd)(ibv_pd *pd);
	int (*dealloc_td)(ibv_td *td);
	int (*dereg_mr)(VerbsMr *mr);
	int (*destroy_ah)(ibv_ah *ah);
	TERN_SINCE_65(int (*destroy_comp_cntr)(ibv_comp_cntr *counter);)
	int (*destroy_counters)(ibv_counters *counters);
	int (*destroy_cq)(ibv_cq *cq);
	int (*destroy_flow)(ibv_flow *flow);
	UnusedOp destroy_flow_action;
	int (*destroy_qp)(ibv_qp *qp);
	int (*destroy_rwq_ind_table)(ibv_rwq_ind_table *table);
	int (*destroy_srq)(ibv_srq *srq);
	int (*destroy_wq)(ibv_wq *wq);
	int (*detach_mcast)(ibv_qp *qp, const ibv_gid *gid, uint16_t lid);
	TERN_SINCE_65(int (*dm_export_dmabuf_fd)(ibv_dm *dm);)
	TERN_SINCE_65(UnusedOp free_buf;)
	void (*free_context)(ibv_context *context);
	int (*free_dm)(ibv_dm *dm);
	int (*get_srq_num)(ibv_srq *srq, uint32_t *srq_num);
	ibv_dm *(*import_dm)(ibv_context *context, uint32_t dm_handle);
	ibv_mr *(*import_mr)(ibv_pd *pd, uint32_t mr_handle);
	ibv_pd *(*import_pd)(ibv_context *context, uint32_t pd_handle);
	TERN_SINCE_65(int (*inc_comp_cntr)(ibv_comp_cntr *counter, uint64_t amount);)
	TERN_SINCE_65(int (*inc_err_comp_cntr)(ibv_comp_cntr *counter, uint64_t amount);)
	int (*modify_cq)(ibv_cq *cq, ibv_modify_cq_attr *attr);
	UnusedOp modify_flow_action_esp;
	int (*modify_qp)(ibv_qp *qp, ibv_qp_attr *attr, int attr_mask);
	int (*modify_qp_rate_limit)(ibv_qp *qp, ibv_qp_rate_limit_attr *attr);
	int (*modify_srq)(ibv_srq *srq, ibv_srq_attr *attr, int attr_mask);
	int (*modify_wq)(ibv_wq *wq, ibv_wq_attr *attr);
	ibv_qp *(*open_qp)(ibv_context *context, ibv_qp_open_attr *attr);
	ibv_xrcd *(*open_xrcd)(ibv_context *context, ibv_xrcd_init_attr *attr);
	int (*poll_cq)(ibv_cq *cq, int num_entries, ibv_wc *wc);
	int (*post_recv)(ibv_qp *qp, ibv_recv_wr *wr, ibv_recv_wr **bad_wr);
	int (*post_send)(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad_wr);
	int (*post_srq_ops)(ibv_srq *srq, ibv_ops_wr *wr, ibv_ops_wr **bad_wr);
	int (*post_srq_recv)(ibv_srq *srq, ibv_recv_wr *wr, ibv_recv_wr **bad_wr);
	TERN_SINCE_65(int (*qp_attach_comp_cntr)(ibv_qp *qp, ibv_comp_cntr *counter,
	                                         ibv_qp_attach_comp_cntr_attr *attr);)
	TERN_SINCE_65(int (*query_comp_cntr_caps)(ibv_context *context, ibv_comp_cntr_caps *caps);)
	int (*query_device_ex)(ibv_context *context, const ibv_query_device_ex_input *input,
	                       ibv_device_attr_ex *attr, size_t attr_size);
	UnusedOp query_ece;
	int (*query_port)(ibv_context *context, uint8_t port_num, ibv_port_attr *attr);
	TERN_SINCE_65(int (*query_port_speed)(ibv_context *context, uint32_t port_num,
	                                      uint64_t *speed);)
	int (*query_qp)(ibv_qp *qp, ibv_qp_attr *attr, int attr_mask, ibv_qp_init_attr *init_attr);
	UnusedOp query_qp_data_in_order;
	int (*query_rt_values)(ibv_context *context, ibv_values_ex *values);
	int (*query_srq)(ibv_srq *srq, ibv_srq_attr *attr);
	TERN_SINCE_65(int (*read_comp_cntr)(ibv_comp_cntr *counter, uint64_t *value);)
	int (*read_counters)(ibv_counters *counters, uint64_t *values, uint32_t count,
	                     uint32_t flags);
	TERN_SINCE_65(int (*read_err_comp_cntr)(ibv_comp_cntr *counter, uint64_t *value);)
	ibv_mr *(*reg_dm_mr)(ibv_pd *pd, ibv_dm *dm, uint64_t dm_offset, size_t length,
	                     unsigned access);
	ibv_mr *(*reg_dmabuf_mr)(ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
	                         int access);
	ibv_mr *(*reg_mr)(ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access);
	TERN_SINCE_65(UnusedOp reg_mr_ex;)
	int (*req_notify_cq)(ibv_cq *cq, int solicited_only);
	int (*rereg_mr)(VerbsMr *mr, int flags, ibv_pd *pd, void *addr, size_t length, int access);
	int (*resize_cq)(ibv_cq *cq, int cqe);
	TERN_SINCE_65(int (*set_comp_cntr)(ibv_comp_cntr *counter, uint64_t value);)
	UnusedOp set_ece;
	TERN_SINCE_65(int (*set_err_comp_cntr)(ibv_comp_cntr *counter, uint64_t value);)
	void (*unimport_dm)(ibv_dm *dm);
	void (*unimport_mr)(ibv_mr *mr);
	void (*unimport_pd)(ibv_pd *pd);
};

static_assert(sizeof(MatchEntry) == 24 && offsetof(MatchEntry, kind) == 20);
static_assert(sizeof(DeviceOps) == 72 && offsetof(DeviceOps, alloc_device) == 56);
static_assert(offsetof(VerbsDevice, ops) == 664 && offsetof(VerbsDevice, sysfs) == 696);
static_assert(sizeof(VerbsDevice) == 712);
static_assert(sizeof(VerbsMr) == sizeof(ibv_mr) + 8);
static_assert(sizeof(VerbsDm) == sizeof(ibv_dm) + 8);
static_assert(sizeof(VerbsCounters) == sizeof(ibv_counters) + 8);
static_assert(sizeof(VerbsXrcd) == sizeof(ibv_xrcd) + 8);
static_assert(sizeof(VerbsSrq) == sizeof(ibv_srq) + 32);
static_assert(offsetof(VerbsSrq, srq_type) == sizeof(ibv_srq));
static_assert(offsetof(VerbsQp, comp_mask) == sizeof(ibv_qp_ex));

/* Whether @offset of a verb is its place in the table of rdma-core 40 to 56, or of 65. */
constexpr bool is_place(size_t offset, size_t before, size_t since_65)
{
	return offset == (TERN_IBVERBS_PRIVATE == 65 ? since_65 : before) * sizeof(void *);
}
static_assert(is_place(offsetof(ContextOps, alloc_pd), 5, 7));
static_assert(is_place(offsetof(ContextOps, destroy_qp), 34, 39));
static_assert(is_place(offsetof(ContextOps, post_send), 55, 64));
static_assert(is_place(sizeof(ContextOps), 76, 93));

/* ---- commands to the kernel --------------------------------------------------------- */

/** A request without a driver part: libibverbs fills header and core. */
template <class Core>
struct Command {
	ib_uverbs_cmd_hdr hdr;
	Core core;
};

/** An extended request without a driver part. */
template <class Core>
struct ExtendedCommand {
	ib_uverbs_cmd_hdr hdr;
	ib_uverbs_ex_cmd_hdr ex_hdr;
	Core core;
};

using GetContextCmd = Command<ib_uverbs_get_context>;
using QueryPortCmd = Command<ib_uverbs_query_port>;
using AllocPdCmd = Command<ib_uverbs_alloc_pd>;
using RegMrCmd = Command<ib_uverbs_reg_mr>;
using ReregMrCmd = Command<ib_uverbs_rereg_mr>;
using CreateCqCmd = Command<ib_uverbs_create_cq>;
using ResizeCqCmd = Command<ib_uverbs_resize_cq>;
using ModifyCqCmd = ExtendedCommand<ib_uverbs_ex_modify_cq>;
using CreateWqCmd = ExtendedCommand<ib_uverbs_ex_create_wq>;
using ModifyWqCmd = ExtendedCommand<ib_uverbs_ex_modify_wq>;
using CreateQpCmd = ExtendedCommand<ib_uverbs_ex_create_qp>;
using OpenQpCmd = Command<ib_uverbs_open_qp>;
using ModifyQpCmd = Command<ib_uverbs_modify_qp>;
using ModifyQpExCmd = ExtendedCommand<ib_uverbs_ex_modify_qp>;
using QueryQpCmd = Command<ib_uverbs_query_qp>;
using QuerySrqCmd = Command<ib_uverbs_query_srq>;
using OpenXrcdCmd = Command<ib_uverbs_open_xrcd>;
using AllocMwCmd = Command<ib_uverbs_alloc_mw>;

/** May be followed by a driver part, so it is without the flexible array of the kernel's struct. */
struct CreateSrqCore {
	uint64_t response;
	uint64_t user_handle;
	uint32_t srq_type;
	uint32_t pd_handle;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;
	uint32_t max_num_tags;
	uint32_t xrcd_handle;
	uint32_t cq_handle;
};
using CreateSrqCmd = Command<CreateSrqCore>;
static_assert(sizeof(CreateSrqCore) == sizeof(ib_uverbs_create_xsrq));

/** Followed by a driver part. */
struct ModifySrqCore {
	uint32_t srq_handle;
	uint32_t attr_mask;
	uint32_t max_wr;
	uint32_t srq_limit;
};
template <class Driver>
struct ModifySrqCmd {
	ib_uverbs_cmd_hdr hdr;
	ModifySrqCore core;
	Driver tern;
};
static_assert(sizeof(ModifySrqCore) == sizeof(ib_uverbs_modify_srq));

static_assert(sizeof(CreateCqCmd) == sizeof(ib_uverbs_cmd_hdr) + sizeof(ib_uverbs_create_cq));

/*
 * The core's part of responses that have a driver part. The structs of the kernel's header end in
 * a flexible array, after which C++ allows no member.
 */
struct GetContextResp {
	uint32_t async_fd;
	uint32_t num_comp_vectors;
};
struct AllocPdResp {
	uint32_t pd_handle;
};
struct CreateCqResp {
	uint32_t cq_handle;
	uint32_t cqe;
};
struct ResizeCqResp {
	uint32_t cqe;
	uint32_t reserved;
};
struct CreateQpResp {
	uint32_t qp_handle;
	uint32_t qpn;
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data;
	uint32_t reserved;
	uint32_t comp_mask; /* comp_mask and response_length: of the extended command */
	uint32_t response_length;
};

struct CreateSrqResp {
	uint32_t srq_handle;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srqn;
};
struct CreateAhResp {
	uint32_t ah_handle;
};

static_assert(sizeof(GetContextResp) == sizeof(ib_uverbs_get_context_resp));
static_assert(sizeof(AllocPdResp) == sizeof(ib_uverbs_alloc_pd_resp));
static_assert(sizeof(CreateCqResp) == sizeof(ib_uverbs_create_cq_resp));
static_assert(sizeof(ResizeCqResp) == sizeof(ib_uverbs_resize_cq_resp));
static_assert(sizeof(CreateQpResp) == sizeof(ib_uverbs_ex_create_qp_resp));
static_assert(sizeof(CreateSrqResp) == sizeof(ib_uverbs_create_srq_resp));
static_assert(sizeof(CreateAhResp) == sizeof(ib_uverbs_create_ah_resp));

/** A response: the core's part, directly followed by the driver's. */
template <class Core, class Driver>
struct Response {
	Core core;
	Driver tern;
	static constexpr bool kPacked = sizeof(Core) % alignof(Driver) == 0;
};

/**
 * A request of the ioctl() interface, directly followed by its attributes (ioctl.h). A function of
 * libibverbs that takes one adds its own attributes and sends them all.
 */
struct CommandBuffer {
	CommandBuffer *next;
	ib_uverbs_attr *next_attr; /* the first free one */
	ib_uverbs_attr *last_attr; /* end of the array */
	uint8_t uhw_in_index;      /* indices of attributes that carry a driver part */
	uint8_t uhw_out_index;
	uint8_t uhw_in_headroom;
	uint8_t uhw_out_headroom;
	uint8_t flags;
	/* struct ib_uverbs_ioctl_hdr without its flexible array; libibverbs sets the rest */
	alignas(8) uint16_t length;
	uint16_t object_id;
	uint16_t method_id;
	uint16_t num_attrs;
	uint64_t reserved1;
	uint32_t driver_id;
	uint32_t reserved2;

	static constexpr uint8_t kNoUhw = 0xff;
};
static_assert(offsetof(CommandBuffer, length) == 32);
static_assert(sizeof(CommandBuffer) == 32 + sizeof(ib_uverbs_ioctl_hdr));

/* ---- functions of libibverbs ---------------------------------------------------------- */

extern "C" {
void TERN_VERSIONED(verbs_register_driver_, TERN_IBVERBS_PRIVATE)(const DeviceOps *ops);

/* Allocates alloc_size zeroed bytes with the verbs_context at offset; closes cmd_fd on failure. */
void *_verbs_init_and_alloc_context(ibv_device *device, int cmd_fd, size_t alloc_size,
                                    verbs_context *offset, uint32_t driver_id);
void verbs_uninit_context(verbs_context *context);
void verbs_set_ops(verbs_context *context, const ContextOps *ops);
int execute_ioctl(ibv_context *context, CommandBuffer *command);

int ibv_cmd_get_context(verbs_context *context, GetContextCmd *cmd,
                        size_t cmd_size TERN_SINCE_65(, ibv_fd_arr *fds), void *resp,
                        size_t resp_size);
int ibv_cmd_query_context(ibv_context *context, CommandBuffer *driver);
int ibv_cmd_query_device_any(ibv_context *context, const ibv_query_device_ex_input *input,
                             ibv_device_attr_ex *attr, size_t attr_size,
                             ib_uverbs_ex_query_device_resp *resp, size_t *resp_size);
int ibv_cmd_query_port(ibv_context *context, uint8_t port_num, ibv_port_attr *attr,
                       QueryPortCmd *cmd, size_t cmd_size);
TERN_SINCE_65(int ibv_cmd_query_port_speed(ibv_context *context, uint32_t port_num,
                                           uint64_t *speed);)
int ibv_cmd_alloc_pd(ibv_context *context, ibv_pd *pd, AllocPdCmd *cmd, size_t cmd_size, void *resp,
                     size_t resp_size);
int ibv_cmd_dealloc_pd(ibv_pd *pd);
int ibv_cmd_reg_mr(ibv_pd *pd, void *addr, size_t length, uint64_t hca_va, int access, VerbsMr *mr,
                   RegMrCmd *cmd, size_t cmd_size, ib_uverbs_reg_mr_resp *resp, size_t resp_size);
int ibv_cmd_advise_mr(ibv_pd *pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge *sges,
                      uint32_t count);
int ibv_cmd_rereg_mr(VerbsMr *mr, uint32_t flags, void *addr, size_t length, uint64_t hca_va,
                     int access, ibv_pd *pd, ReregMrCmd *cmd, size_t cmd_size,
                     ib_uverbs_rereg_mr_resp *resp, size_t resp_size);
/*
 * The last argument of this and of ibv_cmd_create_qp_ex2() came with rdma-core 54 and 65. Callers
 * pass it to any version, as in the calling conventions of x86-64 and ARM64 a function does not
 * notice arguments that it does not know.
 */
int ibv_cmd_reg_dmabuf_mr(ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                          int access, VerbsMr *mr, CommandBuffer *driver);
int ibv_cmd_query_mr(ibv_pd *pd, VerbsMr *mr, uint32_t mr_handle);
int ibv_cmd_dereg_mr(VerbsMr *mr);
int ibv_cmd_alloc_dm(ibv_context *context, const ibv_alloc_dm_attr *attr, VerbsDm *dm,
                     CommandBuffer *driver);
int ibv_cmd_free_dm(VerbsDm *dm);
/* Exports the memory that a process can map at @page, an offset in pages, as a dma-buf. Returns its
 * descriptor, or -1 with errno set. */
TERN_SINCE_65(int ibv_cmd_export_dmabuf_fd(ibv_context *context, off_t page);)
int ibv_cmd_reg_dm_mr(ibv_pd *pd, VerbsDm *dm, uint64_t offset, size_t length, unsigned access,
                      VerbsMr *mr, CommandBuffer *driver);
int ibv_cmd_create_cq(ibv_context *context, int cqe, ibv_comp_channel *channel, int comp_vector,
                      ibv_cq *cq, CreateCqCmd *cmd, size_t cmd_size, void *resp, size_t resp_size);
int ibv_cmd_destroy_cq(ibv_cq *cq);
int ibv_cmd_resize_cq(ibv_cq *cq, int cqe, ResizeCqCmd *cmd, size_t cmd_size, void *resp,
                      size_t resp_size);
int ibv_cmd_modify_cq(ibv_cq *cq, ibv_modify_cq_attr *attr, ModifyCqCmd *cmd, size_t cmd_size);
int ibv_cmd_create_qp_ex2(ibv_context *context, VerbsQp *qp, ibv_qp_init_attr_ex *attr,
                          CreateQpCmd *cmd, size_t cmd_size, void *resp, size_t resp_size,
                          CommandBuffer *driver);
int ibv_cmd_open_qp(ibv_context *context, VerbsQp *qp, int qp_size, ibv_qp_open_attr *attr,
                    OpenQpCmd *cmd, size_t cmd_size, void *resp, size_t resp_size);
int ibv_cmd_modify_qp(ibv_qp *qp, ibv_qp_attr *attr, int attr_mask, ModifyQpCmd *cmd,
                      size_t cmd_size);
int ibv_cmd_modify_qp_ex(ibv_qp *qp, ibv_qp_attr *attr, int attr_mask, ModifyQpExCmd *cmd,
                         size_t cmd_size, ib_uverbs_ex_modify_qp_resp *resp, size_t resp_size);
int ibv_cmd_query_qp(ibv_qp *qp, ibv_qp_attr *attr, int attr_mask, ibv_qp_init_attr *init_attr,
                     QueryQpCmd *cmd, size_t cmd_size);
int ibv_cmd_destroy_qp(ibv_qp *qp);
int ibv_cmd_create_wq(ibv_context *context, ibv_wq_init_attr *attr, ibv_wq *wq, CreateWqCmd *cmd,
                      size_t cmd_size, void *resp, size_t resp_size);
int ibv_cmd_modify_wq(ibv_wq *wq, ibv_wq_attr *attr, ModifyWqCmd *cmd, size_t cmd_size);
int ibv_cmd_destroy_wq(ibv_wq *wq);
int ibv_cmd_create_rwq_ind_table(ibv_context *context, ibv_rwq_ind_table_init_attr *attr,
                                 ibv_rwq_ind_table *table,
                                 ib_uverbs_ex_create_rwq_ind_table_resp *resp, size_t resp_size);
int ibv_cmd_destroy_rwq_ind_table(ibv_rwq_ind_table *table);
int ibv_cmd_create_srq_ex(ibv_context *context, VerbsSrq *srq, ibv_srq_init_attr_ex *attr,
                          CreateSrqCmd *cmd, size_t cmd_size, void *resp, size_t resp_size);
int ibv_cmd_modify_srq(ibv_srq *srq, ibv_srq_attr *attr, int attr_mask, void *cmd, size_t cmd_size);
int ibv_cmd_query_srq(ibv_srq *srq, ibv_srq_attr *attr, QuerySrqCmd *cmd, size_t cmd_size);
int ibv_cmd_destroy_srq(ibv_srq *srq);
int ibv_cmd_open_xrcd(ibv_context *context, VerbsXrcd *xrcd, int xrcd_size,
                      ibv_xrcd_init_attr *attr, OpenXrcdCmd *cmd, size_t cmd_size,
                      ib_uverbs_open_xrcd_resp *resp, size_t resp_size);
int ibv_cmd_close_xrcd(VerbsXrcd *xrcd);
int ibv_cmd_create_ah(ibv_pd *pd, ibv_ah *ah, ibv_ah_attr *attr, void *resp, size_t resp_size);
int ibv_cmd_destroy_ah(ibv_ah *ah);
int ibv_cmd_attach_mcast(ibv_qp *qp, const ibv_gid *gid, uint16_t lid);
int ibv_cmd_detach_mcast(ibv_qp *qp, const ibv_gid *gid, uint16_t lid);
int ibv_cmd_create_flow(ibv_qp *qp, ibv_flow *flow, ibv_flow_attr *attr, void *driver_cmd,
                        size_t driver_cmd_size);
int ibv_cmd_destroy_flow(ibv_flow *flow);
int ibv_cmd_create_counters(ibv_context *context, ibv_counters_init_attr *attr,
                            VerbsCounters *counters, CommandBuffer *driver);
int ibv_cmd_read_counters(VerbsCounters *counters, uint64_t *values, uint32_t count, uint32_t flags,
                          CommandBuffer *driver);
int ibv_cmd_destroy_counters(VerbsCounters *counters);
#if TERN_IBVERBS_PRIVATE == 65
int ibv_cmd_query_comp_cntr_caps(ibv_context *context, ibv_comp_cntr_caps *caps);
int ibv_cmd_create_comp_cntr(ibv_context *context, ibv_comp_cntr *counter, CommandBuffer *driver);
int ibv_cmd_destroy_comp_cntr(ibv_comp_cntr *counter);
int ibv_cmd_set_comp_cntr(ibv_comp_cntr *counter, uint64_t value);
int ibv_cmd_set_err_comp_cntr(ibv_comp_cntr *counter, uint64_t value);
int ibv_cmd_inc_comp_cntr(ibv_comp_cntr *counter, uint64_t amount);
int ibv_cmd_inc_err_comp_cntr(ibv_comp_cntr *counter, uint64_t amount);
int ibv_cmd_qp_attach_comp_cntr(ibv_qp *qp, ibv_comp_cntr *counter,
                                ibv_qp_attach_comp_cntr_attr *attr);
#endif
int ibv_cmd_alloc_mw(ibv_pd *pd, ibv_mw_type type, ibv_mw *mw, AllocMwCmd *cmd, size_t cmd_size,
                     ib_uverbs_alloc_mw_resp *resp, size_t resp_size);
int ibv_cmd_dealloc_mw(ibv_mw *mw);
}

} // namespace tern::private_abi
