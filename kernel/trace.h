/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: /sys/kernel/tracing/events/tern. @dev is the PCI device or, of Ethernet queues, the
 * interface. docs/troubleshooting.md says which one shows what.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tern

#if !defined(TERN_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TERN_TRACE_H

#include <linux/netdevice.h>
#include <linux/tracepoint.h>

#include "compat.h"
#include "names.h"
#include "tern.h"

/* ---- admin commands ---------------------------------------------------------------- */

TRACE_EVENT(tern_cmd_submit,
	TP_PROTO(const struct tern_engine *engine, u16 opcode, u16 id),
	TP_ARGS(engine, opcode, id),
	TP_STRUCT__entry(
		__string(dev, pci_name(engine->tdev->pdev))
		__string(op, tern_aq_op_name(opcode))
		__field(u32, engine)
		__field(u16, id)
	),
	TP_fast_assign(
		tern_assign_str(dev, pci_name(engine->tdev->pdev));
		tern_assign_str(op, tern_aq_op_name(opcode));
		__entry->engine = engine - engine->tdev->engines;
		__entry->id = id;
	),
	TP_printk("%s engine %u id %u %s", __get_str(dev), __entry->engine, __entry->id,
		  __get_str(op))
);

/*
 * @err is what the caller gets: -EIO without a status if the card has stopped. @refused is the
 * offset in the command of the field that is a BAD_FIELD, else 0.
 */
TRACE_EVENT(tern_cmd_complete,
	TP_PROTO(const struct tern_engine *engine, u16 opcode, u16 id, u8 status, u16 refused,
		 int err, s64 usecs),
	TP_ARGS(engine, opcode, id, status, refused, err, usecs),
	TP_STRUCT__entry(
		__string(dev, pci_name(engine->tdev->pdev))
		__string(op, tern_aq_op_name(opcode))
		__string(status, tern_aq_status_name(status))
		__field(u32, engine)
		__field(u16, id)
		__field(u16, refused)
		__field(int, err)
		__field(s64, usecs)
	),
	TP_fast_assign(
		tern_assign_str(dev, pci_name(engine->tdev->pdev));
		tern_assign_str(op, tern_aq_op_name(opcode));
		tern_assign_str(status, tern_aq_status_name(status));
		__entry->engine = engine - engine->tdev->engines;
		__entry->id = id;
		__entry->refused = refused;
		__entry->err = err;
		__entry->usecs = usecs;
	),
	TP_printk("%s engine %u id %u %s status %s err %d in %lld us, refused byte %u",
		  __get_str(dev), __entry->engine, __entry->id, __get_str(op), __get_str(status),
		  __entry->err, __entry->usecs, __entry->refused)
);

/* ---- objects ------------------------------------------------------------------------- */

DECLARE_EVENT_CLASS(tern_object,
	TP_PROTO(const struct tern_dev *tdev, u16 opcode, u32 num),
	TP_ARGS(tdev, opcode, num),
	TP_STRUCT__entry(
		__string(dev, pci_name(tdev->pdev))
		__string(op, tern_aq_op_name(opcode))
		__field(u32, num)
	),
	TP_fast_assign(
		tern_assign_str(dev, pci_name(tdev->pdev));
		tern_assign_str(op, tern_aq_op_name(opcode));
		__entry->num = num;
	),
	TP_printk("%s %s 0x%x", __get_str(dev), __get_str(op), __entry->num)
);

DEFINE_EVENT(tern_object, tern_create,
	TP_PROTO(const struct tern_dev *tdev, u16 opcode, u32 num),
	TP_ARGS(tdev, opcode, num)
);

DEFINE_EVENT(tern_object, tern_destroy,
	TP_PROTO(const struct tern_dev *tdev, u16 opcode, u32 num),
	TP_ARGS(tdev, opcode, num)
);

TRACE_EVENT(tern_modify_qp,
	TP_PROTO(const struct tern_dev *tdev, u32 qpn, u32 mask,
		 const struct tern_hw_qp_attr *attr, int err),
	TP_ARGS(tdev, qpn, mask, attr, err),
	TP_STRUCT__entry(
		__string(dev, pci_name(tdev->pdev))
		__string(state, mask & TERN_QP_STATE ? tern_qp_state_name(attr->state) : "same")
		__field(u32, qpn)
		__field(u32, mask)
		__field(u32, dest_qpn)
		__field(u32, sq_psn)
		__field(u32, rq_psn)
		__field(int, err)
	),
	TP_fast_assign(
		tern_assign_str(dev, pci_name(tdev->pdev));
		tern_assign_str(state, mask & TERN_QP_STATE ? tern_qp_state_name(attr->state) :
							      "same");
		__entry->qpn = qpn;
		__entry->mask = mask;
		__entry->dest_qpn = le32_to_cpu(attr->dest_qpn);
		__entry->sq_psn = le32_to_cpu(attr->sq_psn);
		__entry->rq_psn = le32_to_cpu(attr->rq_psn);
		__entry->err = err;
	),
	TP_printk("%s qpn 0x%x state %s mask 0x%x dest_qpn 0x%x sq_psn 0x%x rq_psn 0x%x err %d",
		  __get_str(dev), __entry->qpn, __get_str(state), __entry->mask,
		  __entry->dest_qpn, __entry->sq_psn, __entry->rq_psn, __entry->err)
);

/* ---- events and failures ---------------------------------------------------------------- */

TRACE_EVENT(tern_event,
	TP_PROTO(const struct tern_dev *tdev, u32 eqn, u8 type, u32 num),
	TP_ARGS(tdev, eqn, type, num),
	TP_STRUCT__entry(
		__string(dev, pci_name(tdev->pdev))
		__string(type, tern_event_name(type))
		__field(u32, eqn)
		__field(u32, num)
	),
	TP_fast_assign(
		tern_assign_str(dev, pci_name(tdev->pdev));
		tern_assign_str(type, tern_event_name(type));
		__entry->eqn = eqn;
		__entry->num = num;
	),
	TP_printk("%s eqn 0x%x %s 0x%x", __get_str(dev), __entry->eqn, __get_str(type),
		  __entry->num)
);

TRACE_EVENT(tern_card_failed,
	TP_PROTO(const struct tern_dev *tdev, const char *why),
	TP_ARGS(tdev, why),
	TP_STRUCT__entry(
		__string(dev, pci_name(tdev->pdev))
		__string(why, why)
	),
	TP_fast_assign(
		tern_assign_str(dev, pci_name(tdev->pdev));
		tern_assign_str(why, why);
	),
	TP_printk("%s the card %s", __get_str(dev), __get_str(why))
);

/* ---- memory on demand ---------------------------------------------------------------------- */

/* A side of QP @qpn needed @length bytes. @resume is enum tern_hw_resume: 1 found, 2 refused. */
TRACE_EVENT(tern_page_fault,
	TP_PROTO(const struct tern_dev *tdev, u32 qpn, const struct tern_hw_fault *fault,
		 u8 resume),
	TP_ARGS(tdev, qpn, fault, resume),
	TP_STRUCT__entry(
		__string(dev, pci_name(tdev->pdev))
		__field(u32, qpn)
		__field(u32, key)
		__field(u64, addr)
		__field(u32, length)
		__field(u8, write)
		__field(u8, resume)
	),
	TP_fast_assign(
		tern_assign_str(dev, pci_name(tdev->pdev));
		__entry->qpn = qpn;
		__entry->key = le32_to_cpu(fault->key);
		__entry->addr = le64_to_cpu(fault->addr);
		__entry->length = le32_to_cpu(fault->length);
		__entry->write = fault->write;
		__entry->resume = resume;
	),
	TP_printk("%s qpn 0x%x key 0x%x addr 0x%llx length %u %s resume %u", __get_str(dev),
		  __entry->qpn, __entry->key, __entry->addr, __entry->length,
		  __entry->write ? "write" : "read", __entry->resume)
);

/* @start and @end are addresses in the process. */
TRACE_EVENT(tern_invalidate,
	TP_PROTO(const struct tern_dev *tdev, u32 key, u64 start, u64 end),
	TP_ARGS(tdev, key, start, end),
	TP_STRUCT__entry(
		__string(dev, pci_name(tdev->pdev))
		__field(u32, key)
		__field(u64, start)
		__field(u64, end)
	),
	TP_fast_assign(
		tern_assign_str(dev, pci_name(tdev->pdev));
		__entry->key = key;
		__entry->start = start;
		__entry->end = end;
	),
	TP_printk("%s key 0x%x from 0x%llx to 0x%llx", __get_str(dev), __entry->key,
		  __entry->start, __entry->end)
);

/* ---- Ethernet -------------------------------------------------------------------------- */

/* A frame that the card cannot send, or for which there is no memory. */
TRACE_EVENT(tern_tx_drop,
	TP_PROTO(const struct net_device *ndev, u32 queue, u32 length, u32 gso_size),
	TP_ARGS(ndev, queue, length, gso_size),
	TP_STRUCT__entry(
		__string(dev, ndev->name)
		__field(u32, queue)
		__field(u32, length)
		__field(u32, gso_size)
	),
	TP_fast_assign(
		tern_assign_str(dev, ndev->name);
		__entry->queue = queue;
		__entry->length = length;
		__entry->gso_size = gso_size;
	),
	TP_printk("%s queue %u length %u gso_size %u", __get_str(dev), __entry->queue,
		  __entry->length, __entry->gso_size)
);

DECLARE_EVENT_CLASS(tern_eth_error,
	TP_PROTO(const struct net_device *ndev, u32 queue, const struct tern_hw_cqe *cqe),
	TP_ARGS(ndev, queue, cqe),
	TP_STRUCT__entry(
		__string(dev, ndev->name)
		__string(status, tern_wc_name(cqe->status))
		__field(u32, queue)
		__field(u32, index)
	),
	TP_fast_assign(
		tern_assign_str(dev, ndev->name);
		tern_assign_str(status, tern_wc_name(cqe->status));
		__entry->queue = queue;
		__entry->index = le32_to_cpu(cqe->wqe_index);
	),
	TP_printk("%s queue %u wqe 0x%x %s", __get_str(dev), __entry->queue, __entry->index,
		  __get_str(status))
);

DEFINE_EVENT(tern_eth_error, tern_tx_error,
	TP_PROTO(const struct net_device *ndev, u32 queue, const struct tern_hw_cqe *cqe),
	TP_ARGS(ndev, queue, cqe)
);

DEFINE_EVENT(tern_eth_error, tern_rx_error,
	TP_PROTO(const struct net_device *ndev, u32 queue, const struct tern_hw_cqe *cqe),
	TP_ARGS(ndev, queue, cqe)
);

/* @msecs is how long the queue waits if it fails again soon. */
TRACE_EVENT(tern_queue_restart,
	TP_PROTO(const struct net_device *ndev, u32 queue, int err, u32 msecs),
	TP_ARGS(ndev, queue, err, msecs),
	TP_STRUCT__entry(
		__string(dev, ndev->name)
		__field(u32, queue)
		__field(int, err)
		__field(u32, msecs)
	),
	TP_fast_assign(
		tern_assign_str(dev, ndev->name);
		__entry->queue = queue;
		__entry->err = err;
		__entry->msecs = msecs;
	),
	TP_printk("%s queue %u err %d next after %u ms", __get_str(dev), __entry->queue,
		  __entry->err, __entry->msecs)
);

#endif

/* define_trace.h includes this file several times, so no guard encloses this part. */
#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
