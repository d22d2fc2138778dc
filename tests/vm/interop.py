# SPDX-License-Identifier: GPL-2.0-or-later
"""Tern and Linux's Soft-RoCE, which shares no code with it, on one wire: each must understand
the other, in every service and both roles, and each drops what has a wrong ICRC.

Everything runs from Tern to rxe, from rxe to Tern, and, to tell whose fault a failure is, from
rxe to rxe. The result is a table. A cell may fail only where LIMITS says that rxe cannot, and
then rxe must fail with itself, too: a limit that no longer holds fails the test.
"""

import contextlib
import re
import time

import outsider
import relay
import roce_capture
from agent import Agent
from programs import EVERY_CELL, Programs
from scenario import LabError, Options, RXE, main, pair

DIRECTIONS = {"tern to rxe": (0, 1), "rxe to tern": (1, 0), "rxe to rxe": (1, 2)}
REFERENCE = "rxe to rxe"

# What rxe of Linux 6.1 cannot: the row's name as a pattern; why; and in which directions.
LIMITS = {
    r"RC SEND_INV's flag": (
        "rxe hands IB_WC_WITH_INVALIDATE to user space, where the flag's number is another",
        ("tern to rxe", "rxe to rxe")),
}

MTUS = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}  # and as verbs number them
# Of all directions, IP versions and MTUs: each once at least, with all operations.
SAMPLE = {("tern to rxe", 4, 256), ("tern to rxe", 6, 1024), ("tern to rxe", 4, 4096),
          ("rxe to tern", 6, 512), ("rxe to tern", 4, 2048), ("rxe to rxe", 4, 1024)}
OPERATIONS = {
    "RC": ("SEND", "SEND_IMM", "SEND_INV", "WRITE", "WRITE_IMM", "READ", "CMP_SWAP", "FETCH_ADD",
           "ATOMIC_WRITE"),
    "UC": ("SEND", "SEND_IMM", "WRITE", "WRITE_IMM"),
    "UD": ("SEND", "SEND_IMM"),
}
QKEY = 0x11111111
GRH = 40
IMM = 0x01020304  # on the wire; verbs hand it over as it is
SOURCE, TARGET = 0, 1 << 16  # in either side's buffer
OPCODE_RECV, OPCODE_RECV_WRITE_IMM = 128, 129
WITH_GRH, WITH_IMM, WITH_INV = 1, 2, 8
# rxe allows more outstanding reads than Tern; perftest leaves it to us to agree.
READS = "-o 16"


class Connection:
    """A QP of each of two agents, connected; requests go from the first to the second."""

    def __init__(self, service, mtu, agents, gids):
        self.service, self.mtu, self.agents, self.gids = service, mtu, agents, gids
        self.qpns = [agent.create(service=service) for agent in agents]
        self.inv_flags = 0  # of the last completion of a SEND with invalidate
        psns = (0xfffff0, 7)  # wraps soon
        for end in (0, 1):
            index, _ = gids[end]
            agents[end].connect(
                local=self.qpns[end], qpn=self.qpns[1 - end], psn=psns[end],
                rq_psn=psns[1 - end], gid=gids[1 - end][1], gid_index=index, mtu=MTUS[mtu],
                qkey=QKEY)

    def close(self):
        for agent, qpn in zip(self.agents, self.qpns):
            agent.destroy(local=qpn)

    # --- the two sides

    def request(self, opcode, **more):
        sender, qpn = self.agents[0], self.qpns[0]
        sender.send(local=qpn, opcode=opcode, qkey=QKEY, **more)
        sender.completions(local=qpn, kind="send")

    def remote(self, offset=TARGET):
        return {"rkey": self.agents[1].rkey, "address": self.agents[1].address + offset}

    def expect(self, what, got, wanted):
        if got != wanted:
            raise LabError(f"{what}: {got} instead of {wanted}")

    # --- operations, with the data compared

    def run(self, operation):
        action = getattr(self, operation.lower().removesuffix("_imm"))
        if operation in ("CMP_SWAP", "FETCH_ADD", "ATOMIC_WRITE", "SEND_INV"):
            action()
            return
        largest = self.mtu if self.service == "UD" else 3 * self.mtu + 5
        for length in (1, largest):
            action(length, operation.endswith("_IMM"))

    def send(self, length, imm):
        (sender, receiver), qpn = self.agents, self.qpns[1]
        skip = GRH if self.service == "UD" else 0
        receiver.zero(offset=TARGET, length=skip + length + 8)
        receiver.receive(local=qpn, offset=TARGET, length=skip + length + 4)
        sender.fill(offset=SOURCE, length=length, seed=length)
        self.request("SEND_IMM" if imm else "SEND", offset=SOURCE, length=length,
                     **({"imm": IMM} if imm else {}))
        (done,) = receiver.completions(local=qpn, kind="receive")
        self.expect("length", done["length"], skip + length)
        self.expect("opcode", done["opcode"], OPCODE_RECV)
        self.expect("immediate's flag", done["flags"] & WITH_IMM, WITH_IMM if imm else 0)
        if imm:
            self.expect("immediate", done["imm"], IMM)
        if skip:
            self.expect("GRH's flag", done["flags"] & WITH_GRH, WITH_GRH)
            self.expect("source QP", done["source"], self.qpns[0])
            self.check_grh()
        self.check_data(receiver, TARGET + skip, length, length)

    def check_grh(self):
        """RoCEv2: IPv6's header, or IPv4's behind 20 bytes that mean nothing."""
        header = bytes.fromhex(self.agents[1].read(offset=TARGET, length=GRH))
        ends = [bytes.fromhex(gid.replace(":", "")) for gid in self.long_gids()]
        if ends[0].startswith(bytes(10) + b"\xff\xff"):
            self.expect("IPv4 version", header[20], 0x45)
            self.expect("IPv4 addresses", header[32:], ends[0][12:] + ends[1][12:])
        else:
            self.expect("IPv6 version", header[0] >> 4, 6)
            self.expect("IPv6 addresses", header[8:], ends[0] + ends[1])

    def long_gids(self):
        return [gid for _, gid in self.gids]

    def check_data(self, agent, offset, length, seed):
        if not agent.check(offset=offset, length=length, seed=seed):
            raise LabError(f"{length} bytes arrived with other contents")
        self.expect("bytes behind the data", agent.read(offset=offset + length, length=4), "0" * 8)

    def write(self, length, imm):
        (sender, receiver), qpn = self.agents, self.qpns[1]
        receiver.zero(offset=TARGET, length=length + 8)
        sender.fill(offset=SOURCE, length=length, seed=length)
        if imm:
            receiver.receive(local=qpn, offset=0, length=0)
            self.request("WRITE_IMM", offset=SOURCE, length=length, imm=IMM, **self.remote())
            (done,) = receiver.completions(local=qpn, kind="receive")
            self.expect("opcode", done["opcode"], OPCODE_RECV_WRITE_IMM)
            self.expect("length", done["length"], length)
            self.expect("immediate", done["imm"], IMM)
        else:
            self.request("WRITE", offset=SOURCE, length=length, **self.remote())
            # Nothing tells when an unacknowledged one has arrived.
            pair.wait_until(lambda: receiver.check(offset=TARGET, length=length, seed=length), 5)
        self.check_data(receiver, TARGET, length, length)

    def read(self, length, _):
        sender, receiver = self.agents
        sender.zero(offset=SOURCE, length=length + 8)
        receiver.fill(offset=TARGET, length=length, seed=length)
        self.request("READ", offset=SOURCE, length=length, **self.remote())
        self.check_data(sender, SOURCE, length, length)

    def atomic(self, opcode, before, after, **operands):
        sender, receiver = self.agents
        sender.store(offset=SOURCE, value=0)
        receiver.store(offset=TARGET, value=before)
        self.request(opcode, offset=SOURCE, length=8, **self.remote(), **operands)
        self.expect("value before", sender.load(offset=SOURCE), before)
        self.expect("value after", receiver.load(offset=TARGET), after)

    def fetch_add(self):
        value, add = 0xfedcba9876543210, 0x0123456789abcdf1
        self.atomic("FETCH_ADD", value, (value + add) % (1 << 64), compare_add=add)

    def cmp_swap(self):
        value, other = 0x1122334455667788, 0x8877665544332211
        self.atomic("CMP_SWAP", value, other, compare_add=value, swap=other)
        self.atomic("CMP_SWAP", value, value, compare_add=other, swap=other)

    def atomic_write(self):
        (sender, receiver), qpn = self.agents, self.qpns[0]
        receiver.zero(offset=TARGET, length=16)
        for value in (0x0102030405060708, 0xfedcba9876543210):
            sender.send_atomic_write(local=qpn, value=value, **self.remote())
            sender.completions(local=qpn, kind="send")
            self.expect("value", receiver.load(offset=TARGET), value)
        self.expect("value behind", receiver.load(offset=TARGET + 8), 0)

    def send_inv(self):
        """SEND with invalidate ends the life of a window of the receiver's."""
        (sender, receiver), qpn = self.agents, self.qpns[1]
        key = receiver.bind(local=qpn, offset=TARGET, length=4096)
        receiver.completions(local=qpn, kind="send")
        sender.fill(offset=SOURCE, length=64, seed=1)
        window = {"rkey": key, "address": receiver.address + TARGET}
        self.request("WRITE", offset=SOURCE, length=64, **window)
        receiver.receive(local=qpn, offset=TARGET + 8192, length=64)
        self.request("SEND_INV", offset=SOURCE, length=64, imm=key)
        (done,) = receiver.completions(local=qpn, kind="receive")
        self.expect("key", done["imm"], key)
        self.inv_flags = done["flags"]
        sender.send(local=self.qpns[0], opcode="WRITE", offset=SOURCE, length=64, **window)
        (done,) = sender.poll(local=self.qpns[0], kind="send")
        if done["status"] == 0:
            raise LabError("a WRITE through an invalidated window succeeds")


class RxeCannot(LabError):
    """A failure whose cause rxe's own log has shown."""


class Interop(Programs):
    HOSTS = (Options(), Options(nic="virtio"), Options(nic="virtio"))
    TITLE, COLUMNS = "", tuple(DIRECTIONS)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.results, cls.times, cls.wanted = {}, [], set()
        cls.path = cls.lab.logs / "interop.pcap"
        cls.lab.wire.capture(cls.path)

    @contextlib.contextmanager
    def attempt(self, row, direction):
        """A cell: what fails is judged at the end of the test, by judge()."""
        begun = time.time()
        error = None
        try:
            yield
        except (LabError, AssertionError) as failure:
            error = failure
        self.times.append((begun, time.time(), f"{row}, {direction}"))
        self.results.setdefault(row, {}).setdefault(direction, []).append(error)

    def judge(self):
        """Every cell passes, or its row is a limit of rxe's, which rxe shows against itself."""
        wrong = []
        for row, cells in self.results.items():
            limits = next((limit for name, limit in LIMITS.items() if re.fullmatch(name, row)),
                          ("", ()))
            for direction, errors in cells.items():
                limit = limits[0] if direction in limits[1] or RXE else None
                errors = [error for error in errors if error]
                unexplained = [error for error in errors if not isinstance(error, RxeCannot)]
                self.table.set(row, direction, "ok" if not errors else
                               "rxe cannot" if limit or not unexplained else "FAILED")
                if unexplained and not limit:
                    wrong.append(f"{row}, {direction}: {unexplained[0]}")
                if limit and direction == REFERENCE and not errors:
                    wrong.append(f"{row}: rxe can by now, against the list: {limit}")
        self.results.clear()
        self.assertFalse(wrong, "\n".join(wrong))

    def tearDown(self):
        self.check_wire()
        super().tearDown()

    def check_wire(self):
        """tshark and the ICRCs have nothing to complain about; if they do: in which cell?"""
        self.lab.wire.stop_capture()
        found = roce_capture.complaints(self.path, relay=outsider.MAC)
        seen = {packet.opcode for packet in roce_capture.packets(self.path)}
        self.path.rename(self.path.with_suffix(".last.pcap"))
        self.lab.wire.capture(self.path)
        if self._testMethodName != "test_network":
            self.assertTrue(seen, "there is no RoCE packet in the capture")
        self.assertLessEqual(self.wanted, seen)
        self.wanted.clear()
        named = [f"{self.cell_at(when)}: {what}" for when, what in found]
        self.assertFalse(named, "\n".join(named[:20]))

    def cell_at(self, when):
        """A moment of slack for what was still on the wire."""
        return next((name for begun, ended, name in reversed(self.times)
                     if begun <= when <= ended + 0.5), "between cells")

    def each_direction(self):
        for direction, ends in DIRECTIONS.items():
            yield direction, [self.hosts[end] for end in ends]

    # --- verbs, cell by cell

    def test_verbs(self):
        agents = [Agent(host, self.devices[host.name]) for host in self.hosts]
        try:
            # What only a peer lacks is left out of the matrix.
            lacking = [operation for operation in OPERATIONS["RC"] if not agents[0].can(operation)]
            self.assertFalse(lacking if not RXE else [], "Tern lacks operations")
            gids = [{ip: self.gid(agent.host, ip) for ip in (4, 6)} for agent in agents]
            for direction, ends in DIRECTIONS.items():
                for ip in (4, 6):
                    self.matrix(direction, ip, [agents[end] for end in ends],
                                [gids[end][ip] for end in ends])
        finally:
            for agent in agents:
                agent.close()
        self.flush()
        self.judge()

    def gid(self, host, ip):
        device = self.devices[host.name]
        index = host.gid_index(device, self.address(host, ip))
        gids = {at: gid.packed.hex(":", 2) for at, gid, _ in host.gids(device)}
        return index, gids[index]

    def matrix(self, direction, ip, agents, gids):
        for service, operations in OPERATIONS.items():
            for mtu in MTUS:
                if not EVERY_CELL and (direction, ip, mtu) not in SAMPLE:
                    continue
                connection = None
                for operation in operations:
                    if not all(agent.can(operation) for agent in agents):
                        continue
                    good = False
                    with self.attempt(f"{service} {operation}, MTU {mtu}", direction):
                        connection = connection or Connection(service, mtu, agents, gids)
                        connection.run(operation)
                        good = operation != "SEND_INV"  # which ends in an error
                    if operation == "SEND_INV" and connection:
                        with self.attempt("RC SEND_INV's flag", direction):
                            connection.expect("flags", connection.inv_flags & WITH_INV, WITH_INV)
                    if connection and not good:
                        connection.close()
                        connection = None
                if connection:
                    connection.close()

    def flush(self):
        """By a program, as Python's verbs have no FLUSH. rxe has none to post it either, so it
        is only asked for one, and that since Linux 6.2, by way of a relay: see relay.py."""
        tern, rxe = self.hosts[:2]
        if tern.run("uname -r").out.startswith("6.1."):
            return
        row, asked, *others = "RC FLUSH", *DIRECTIONS
        with self.attempt(row, asked), relay.between(self.lab, tern, rxe) as between:
            said = self.verbs_check("flush-written flush-refused", hosts=(rxe, tern))
            self.assertIn("2 cases, ", said)
            self.assertNotIn("lacking", said)
            self.assertTrue(between.flushes)
        for direction in others:
            self.table.set(row, direction, "no verb")
        self.wanted.add(relay.FLUSH)

    # --- programs

    def programs(self, rows):
        for row, action in rows.items():
            for direction, hosts in self.sample(list(self.each_direction())):
                with self.attempt(row, direction):
                    # The first is the one that asks.
                    action(hosts[::-1])
        self.judge()

    def test_network(self):
        tern, rxe = self.hosts[:2]
        for address in (rxe.ipv4, rxe.ipv6):
            self.ping(tern, address, size=8000)
        self.transfer(tern, rxe, mebibytes=4)
        self.transfer(rxe, tern, mebibytes=4)

    def test_pingpongs(self):
        rows = {}
        for program, arguments in (
                ("ibv_rc_pingpong", "-c -n 50 -s 20000"), ("ibv_rc_pingpong", "-c -e -n 50"),
                ("ibv_uc_pingpong", "-c -n 50"), ("ibv_ud_pingpong", "-c -n 50"),
                ("ibv_srq_pingpong", "-c -n 20 -q 4")):
            rows[f"{program} {arguments}"] = lambda hosts, program=program, arguments=arguments: [
                self.any_pingpong(program, arguments, hosts, ip) for ip in (4, 6)]
        self.programs(rows)

    def test_perftest(self):
        rows = {}
        for program, arguments in (
                ("ib_write_bw", "-s 65536 -n 50"), ("ib_read_bw", f"{READS} -s 65536 -n 50"),
                ("ib_send_bw", "-s 65536 -n 50"), ("ib_write_lat", "-s 3 -n 50"),
                ("ib_atomic_bw", f"{READS} -n 100"), ("ib_send_bw", "-c UC -s 8192 -n 50"),
                ("ib_write_bw", "-c UC -s 8192 -n 50"), ("ib_send_bw", "-c UD -s 2048 -n 50"),
                ("ib_send_lat", "-c UD -s 64 -n 50")):
            rows[f"{program} {arguments}"] = lambda hosts, program=program, arguments=arguments: \
                self.perftest(program, arguments, hosts=hosts, ip=6 if "3" in arguments else 4)
        self.programs(rows)

    def test_rdma_cm(self):
        self.programs({
            "rping": self.rping,
            "rping, IPv6": lambda hosts: self.rping(hosts, ip=6),
            "ucmatose": self.ucmatose,
            "ucmatose, IPv6": lambda hosts: self.ucmatose(hosts, ip=6),
            "udaddy": self.udaddy,
            "udaddy, IPv6": lambda hosts: self.udaddy(hosts, ip=6),
            "mckey": self.mckey_to_group,
            "rstream": self.stream,
            "riostream": lambda hosts: self.stream(hosts, "riostream"),
            "ib_send_bw -R": lambda hosts: self.cm_perftest(hosts, "ib_send_bw", "-s 8192 -n 50"),
            "ib_send_bw -R -c UD":
                lambda hosts: self.cm_perftest(hosts, "ib_send_bw", "-c UD -s 1024 -n 50"),
        })

    def mckey_to_group(self, hosts):
        """mckey destroys its address handle as soon as it has posted. rxe of Linux 6.12 looks the
        handle up later, in a work queue, and then drops the message if it is gone."""
        sender = hosts[1]

        def dropped():
            return sender.run("dmesg | grep -c 'rxe_get_av: Unable to find AH'", check=False).out

        sender.run("echo 'func rxe_get_av +p' >/proc/dynamic_debug/control")
        before = dropped()
        try:
            self.mckey(hosts, "239.1.2.3")
        except LabError as error:
            if dropped() == before:
                raise
            raise RxeCannot("rxe found no address handle") from error

    def test_rejection(self):
        """To a port where nobody listens: the other side's REJ is understood."""
        def refused(hosts):
            server, client = hosts
            said = client.run(f"rping -c -C 1 -a {server.ipv4} -p 7999", check=False, timeout=30)
            self.assertIn("RDMA_CM_EVENT_REJECTED, error 8", said.out + said.err)

        self.programs({"rping to no listener: rejected": refused})


if __name__ == "__main__":
    main()
