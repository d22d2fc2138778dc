# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in a guest and does with verbs what a scenario on the host tells it.

A line of JSON comes in for each step and one goes back. So one process per host runs any number
of operations, between any two devices, and the scenario sees both ends: Python takes two seconds
to start under TCG. tests/vm/agent.py is the other half.
"""

import contextlib
import errno
import json
import os
import random
import signal
import struct
import sys
import time

from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import DM, AllocDmAttr, Context
from pyverbs.flow import Flow, FlowAttr
from pyverbs.mr import DMMR, MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wq import (
    WQ, RwqIndTable, RwqIndTableInitAttr, RxHashConf, WQAttr, WQInitAttr)
from pyverbs.wr import RecvWR, SGE, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr
from verbs_constants import e

ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
          | e.IBV_ACCESS_REMOTE_ATOMIC)
SERVICES = {"RC": e.IBV_QPT_RC, "UC": e.IBV_QPT_UC, "UD": e.IBV_QPT_UD}
OPCODES = {
    "SEND": e.IBV_WR_SEND, "SEND_IMM": e.IBV_WR_SEND_WITH_IMM,
    "SEND_INV": e.IBV_WR_SEND_WITH_INV,
    "WRITE": e.IBV_WR_RDMA_WRITE, "WRITE_IMM": e.IBV_WR_RDMA_WRITE_WITH_IMM,
    "READ": e.IBV_WR_RDMA_READ,
    "CMP_SWAP": e.IBV_WR_ATOMIC_CMP_AND_SWP, "FETCH_ADD": e.IBV_WR_ATOMIC_FETCH_AND_ADD,
}
STATES = ("RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")
DEPTH = 64
TOEPLITZ, KEY = 1, 40  # of enum ibv_rx_hash_function_flags; bytes
DEVICE_ATOMIC_WRITE = 1 << 40  # of device_cap_flags_ex; pyverbs has no name for it


def pattern(seed, length):
    """Bytes that the other side knows, too."""
    return random.Random(seed).randbytes(length)


class Queue:
    """A QP with a CQ for each direction."""

    def __init__(self, agent, service, access=True):
        self.agent, self.service, self.access = agent, service, access
        self.send_cq, self.recv_cq = CQ(agent.context, 2 * DEPTH), CQ(agent.context, 2 * DEPTH)
        init = {"qp_type": SERVICES[service], "scq": self.send_cq, "rcq": self.recv_cq,
                "cap": QPCap(max_send_wr=DEPTH, max_recv_wr=DEPTH)}
        if service == "RC" and agent.atomic_write:
            # Which only the extended interface can post.
            self.qp = QPEx(agent.context, QPInitAttrEx(
                pd=agent.pd, send_ops_flags=e.IBV_QP_EX_WITH_ATOMIC_WRITE,
                comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, **init))
        else:
            self.qp = QP(agent.pd, QPInitAttr(**init))
        self.handle = None
        self.remote = None

    def connect(self, qpn, psn, rq_psn, gid, gid_index, mtu, qkey, **more):
        """To RTS. What is not named has values with which tests end soon, but not too soon."""
        grh = GlobalRoute(dgid=GID(gid), sgid_index=gid_index, hop_limit=more.get("hop_limit", 64),
                          traffic_class=more.get("traffic_class", 0))
        address = AHAttr(gr=grh, is_global=1, port_num=1, sl=more.get("sl", 0))
        self.remote = qpn
        attr = QPAttr(port_num=1)
        attr.qkey = qkey
        if self.service == "UD":
            attr.sq_psn = psn
            self.qp.to_rts(attr)
            self.handle = AH(self.agent.pd, attr=address)
            return
        attr.qp_access_flags = ACCESS if self.access else e.IBV_ACCESS_LOCAL_WRITE
        if self.service == "UC":
            # UC has neither reads nor atomics to allow (table 95 of the specification).
            attr.qp_access_flags &= e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
        attr.ah_attr, attr.dest_qp_num, attr.path_mtu = address, qpn, mtu
        attr.rq_psn, attr.sq_psn = rq_psn, psn
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.min_rnr_timer = more.get("min_rnr_timer", 12)
        attr.timeout = more.get("timeout", 18)
        attr.retry_cnt, attr.rnr_retry = more.get("retry_cnt", 7), more.get("rnr_retry", 7)
        if more.get("rtr_only"):
            self.qp.to_rtr(attr)
        else:
            self.qp.to_rts(attr)

    def close(self):
        for thing in filter(None, (self.qp, self.handle, self.send_cq, self.recv_cq)):
            thing.close()


class Agent:
    def __init__(self):
        self.device = self.context = self.pd = self.mr = None
        self.atomic_write = False
        self.queues, self.windows = {}, {}  # by number, by key
        self.rss = []
        self.device_memory = []

    # --- objects

    def open(self, device, size, on_demand=False):
        self.device, self.context = device, Context(name=device)
        self.pd = PD(self.context)
        flags = self.context.query_device().device_cap_flags
        windows = flags & (e.IBV_DEVICE_MEM_WINDOW_TYPE_2A | e.IBV_DEVICE_MEM_WINDOW_TYPE_2B)
        access = ACCESS | (e.IBV_ACCESS_MW_BIND if windows else 0)
        self.mr = MR(self.pd, size, access | (e.IBV_ACCESS_ON_DEMAND if on_demand else 0))
        extended = self.context.query_device_ex().device_cap_flags_ex
        self.atomic_write = bool(extended & DEVICE_ATOMIC_WRITE)
        return {"address": self.mr.buf, "rkey": self.mr.rkey, "windows": bool(windows),
                "atomic_write": self.atomic_write}

    def create(self, service, access=True):
        queue = Queue(self, service, access)
        self.queues[queue.qp.qp_num] = queue
        return queue.qp.qp_num

    def create_rss(self):
        """A QP that spreads frames over one WQ. It lives as long as the program."""
        cq = CQ(self.context, DEPTH)
        wq = WQ(self.context, WQInitAttr(wq_pd=self.pd, wq_cq=cq))
        table = RwqIndTable(self.context, RwqIndTableInitAttr(log_ind_tbl_size=1,
                                                              wqs_list=[wq, wq]))
        spread = RxHashConf(TOEPLITZ, KEY, [1] * KEY, e.IBV_RX_HASH_SRC_IPV4)
        qp = QP(self.context, QPInitAttrEx(
            qp_type=e.IBV_QPT_RAW_PACKET, pd=self.pd, hash_conf=spread, ind_table=table,
            comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_IND_TABLE
            | e.IBV_QP_INIT_ATTR_RX_HASH))
        self.rss = [qp, table, wq, cq]
        return qp.qp_num

    def register_device_memory(self, length):
        """Makes a region of the card's memory. It lives as long as the program."""
        memory = DM(self.context, AllocDmAttr(length))
        region = DMMR(self.pd, length, e.IBV_ACCESS_ZERO_BASED, dm=memory, offset=0)
        self.device_memory = [region, memory]

    def connect(self, local, **how):
        self.queues[local].connect(**how)

    def destroy(self, local):
        self.queues.pop(local).close()

    def state(self, local):
        attr, _ = self.queues[local].qp.query(e.IBV_QP_STATE)
        return STATES[attr.qp_state]

    def next_event(self, patience):
        """The type of the next asynchronous event. If there is none, SIGALRM ends the program."""
        signal.alarm(patience)
        event = self.context.get_async_event()
        signal.alarm(0)
        event.ack()
        return event.event_type

    def error(self, local):
        """To ERR: what is posted comes back flushed."""
        attr = QPAttr(qp_state=e.IBV_QPS_ERR)
        self.queues[local].qp.modify(attr, e.IBV_QP_STATE)

    def reset(self, local):
        """To RESET: what is posted is gone."""
        attr = QPAttr(qp_state=e.IBV_QPS_RESET)
        self.queues[local].qp.modify(attr, e.IBV_QP_STATE)

    def bind(self, local, offset, length):
        """A window of type 2 on the region; returns its key. The request completes as a send."""
        queue = self.queues[local]
        window = MW(self.pd, e.IBV_MW_TYPE_2)
        request = SendWR(opcode=e.IBV_WR_BIND_MW, num_sge=0, send_flags=e.IBV_SEND_SIGNALED)
        request.set_bind_wr(window, MWBindInfo(self.mr, self.mr.buf + offset, length,
                                               e.IBV_ACCESS_REMOTE_WRITE))
        queue.qp.post_send(request)
        self.windows[request.rkey] = window
        return request.rkey

    def all_kinds(self, gid, gid_index):
        """Creates an object of each kind in a context of its own, changes those that can be
        changed, and destroys all, also when one is refused."""
        with contextlib.ExitStack() as made:
            def make(kind, *arguments, **more):
                thing = kind(*arguments, **more)
                made.callback(thing.close)
                return thing

            context = make(Context, name=self.device)
            pd, another = make(PD, context), make(PD, context)
            region = make(MR, pd, 4096, ACCESS)
            region.rereg(e.IBV_REREG_MR_CHANGE_PD, pd=another)
            make(MR, pd, 4096, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_ON_DEMAND)
            memory = make(DM, context, AllocDmAttr(4096))
            make(DMMR, pd, 64, e.IBV_ACCESS_ZERO_BASED, dm=memory, offset=0)
            make(MW, pd, e.IBV_MW_TYPE_1)
            make(MW, pd, e.IBV_MW_TYPE_2)
            cq = make(CQ, context, 16, channel=make(CompChannel, context))
            cq.resize(64)
            srq = make(SRQ, pd, SrqInitAttr(SrqAttr(max_wr=16)))
            srq.modify(SrqAttr(srq_limit=4), e.IBV_SRQ_LIMIT)
            make(XRCD, context, XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS,
                                             os.O_CREAT, -1))
            for service, queue in (("RC", None), ("RC", srq), ("UC", None)):
                qp = make(QP, pd, QPInitAttr(qp_type=SERVICES[service], scq=cq, rcq=cq, srq=queue,
                                             cap=QPCap(max_send_wr=4, max_recv_wr=4)))
                qp.to_rts(self.loopback(qp, gid, gid_index))
            raw = make(QP, pd, QPInitAttr(qp_type=e.IBV_QPT_RAW_PACKET, scq=cq, rcq=cq,
                                          cap=QPCap(max_send_wr=4, max_recv_wr=4)))
            raw.to_rts(QPAttr(port_num=1))
            make(Flow, raw, FlowAttr(num_of_specs=0, port=1))
            wq = make(WQ, context, WQInitAttr(wq_pd=pd, wq_cq=cq))
            wq.modify(WQAttr(e.IBV_WQ_ATTR_STATE, wq_state=e.IBV_WQS_RDY))
            make(RwqIndTable, context, RwqIndTableInitAttr(log_ind_tbl_size=1, wqs_list=[wq, wq]))

    @staticmethod
    def loopback(qp, gid, gid_index):
        """The attributes with which a connected QP sends to itself."""
        attr = QPAttr(port_num=1)
        grh = GlobalRoute(dgid=GID(gid), sgid_index=gid_index, hop_limit=1)
        attr.ah_attr, attr.dest_qp_num = AHAttr(gr=grh, is_global=1, port_num=1), qp.qp_num
        return attr

    # --- memory

    def fill(self, offset, length, seed):
        self.mr.write(pattern(seed, length), length, offset)

    def zero(self, offset, length):
        self.mr.write(bytes(length), length, offset)

    def check(self, offset, length, seed):
        return self.mr.read(length, offset) == pattern(seed, length)

    def read(self, offset, length):
        return self.mr.read(length, offset).hex()

    def write(self, offset, data):
        self.mr.write(bytes.fromhex(data), len(data) // 2, offset)

    def store(self, offset, value):
        self.mr.write(struct.pack("=Q", value), 8, offset)

    def load(self, offset):
        return struct.unpack("=Q", self.mr.read(8, offset))[0]

    # --- work

    def receive(self, local, offset, length, count=1):
        sge = SGE(self.mr.buf + offset, length, self.mr.lkey)
        for number in range(count):
            self.queues[local].qp.post_recv(RecvWR(wr_id=number, num_sge=1, sg=[sge]))

    def send(self, local, opcode, offset=0, length=0, **more):
        queue = self.queues[local]
        sge = SGE(self.mr.buf + offset, length, self.mr.lkey)
        request = SendWR(opcode=OPCODES[opcode], num_sge=1, sg=[sge])
        request.send_flags = e.IBV_SEND_SIGNALED if more.get("signalled", True) else 0
        if "imm" in more:
            request.imm_data = more["imm"]
        if opcode in ("WRITE", "WRITE_IMM", "READ"):
            request.set_wr_rdma(more["rkey"], more["address"])
        elif opcode in ("CMP_SWAP", "FETCH_ADD"):
            request.set_wr_atomic(more["rkey"], more["address"], more["compare_add"],
                                  more.get("swap", 0))
        elif queue.service == "UD":
            request.set_wr_ud(queue.handle, more.get("qpn", queue.remote), more["qkey"])
        for _ in range(more.get("count", 1)):
            queue.qp.post_send(request)

    def send_atomic_write(self, local, rkey, address, value):
        qp = self.queues[local].qp
        qp.wr_start()
        qp.wr_id, qp.wr_flags = 0, e.IBV_SEND_SIGNALED
        qp.wr_atomic_write(rkey, address, struct.pack("=Q", value))
        qp.wr_complete()

    def poll(self, local, kind, timeout, count=1):
        queue = self.queues[local]
        cq = queue.send_cq if kind == "send" else queue.recv_cq
        found = []
        deadline = time.monotonic() + timeout
        while len(found) < count:
            late = time.monotonic() > deadline  # before a poll, which may find what has come since
            number, completions = cq.poll(count - len(found))
            if not number and late:
                break
            if not number:
                time.sleep(0.0005)
                continue
            found += [{"status": wc.status, "opcode": wc.opcode, "length": wc.byte_len,
                       "imm": wc.imm_data, "flags": wc.wc_flags, "source": wc.src_qp}
                      for wc in completions]
        return found

    def serve(self):
        for line in sys.stdin:
            name, arguments = json.loads(line)
            try:
                answer = {"ok": getattr(self, name)(**arguments)}
            except PyverbsRDMAError as error:
                code = getattr(error, "error_code", 0)
                answer = {"error": f"{name}: {error}", "errno": errno.errorcode.get(code, code)}
            except Exception as error:  # pylint: disable=broad-except
                answer = {"error": f"{name}: {type(error).__name__}: {error}"}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    print(json.dumps({"ok": "ready"}), flush=True)
    Agent().serve()
