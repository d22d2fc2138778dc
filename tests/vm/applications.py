# SPDX-License-Identifier: GPL-2.0-or-later
"""What people run over RDMA, unmodified from Debian: qperf, fio, libfabric, UCX, Open MPI."""

import pathlib
import re

from programs import EVERY_CELL, Programs
from scenario import Options, main, pair

MPI_PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "guest/mpi_check.py"
QPERF_PORT, FIO_PORT, FABRIC_PORT, UCX_PORT = 19765, 9797, 47592, 13337
# libfabric's ofi_rxm reads connection events between two polls of its CQ. If the peer ends the
# connection in that moment, ofi_rxm destroys its QP with the last completions unpolled, and reports
# them as flushed. It reads events once a second here, in place of every 10 ms.
FABRIC_EVENTS = "FI_OFI_RXM_CM_PROGRESS_INTERVAL=1000000"


# UCX connects RC with the help of UD.
TRANSPORTS = ("rc_verbs,ud_verbs:aux", "ud_verbs")
# The parts of the MPI program, by the transports that UCX may use. UCX does the atomic operations
# of MPI's windows in software here: the card counts none. With UCX's shared memory transport, the
# lock does not end over TCP either, so it runs without shared memory.
MPI_PARTS = ("ring", "allreduce", "alltoall", "window", "counter")
# Without every cell each part runs over one of the transports.
MPI_RUNS = ((f"{TRANSPORTS[0]},self,sm", MPI_PARTS if EVERY_CELL else MPI_PARTS[::2]),
            (f"{TRANSPORTS[1]},self,sm", MPI_PARTS if EVERY_CELL else MPI_PARTS[1::2]),
            (TRANSPORTS[0], ("spin_lock",)))


def ucx(device, transports):
    """What UCX may use, in its environment."""
    return f"UCX_NET_DEVICES={device} UCX_TLS={transports}"


def prepare_mpi(hosts, program):
    """Lets the first host start the program on all of them."""
    for host in hosts:
        host.write_file(f"/tmp/{program.name}", program.read_bytes())
        host.write_file("/root/.ssh/id_ed25519", host.image.ssh_key.read_bytes())
        host.run("""printf 'StrictHostKeyChecking no\\nLogLevel ERROR\\n' >/root/.ssh/config
                    chmod 600 /root/.ssh/id_ed25519""")


def mpirun(hosts, ranks, options, command):
    """So many ranks on each host. Returns what they said."""
    slots = ",".join(f"{host.ipv4}:{ranks}" for host in hosts)
    return hosts[0].run(f"mpirun --allow-run-as-root -H {slots} {options} "
                        f"--mca oob_tcp_if_include 10.77.0.0/24 python3 -B /tmp/{command}",
                        timeout=180).out


def mpi_over_ucx(device, transports):
    """By UCX alone."""
    settings = " ".join(f"-x {setting}" for setting in ucx(device, transports).split())
    return f"--mca pml ucx --mca osc ucx --mca btl ^openib,tcp {settings}"


class Applications(Programs):
    HOSTS = (Options(mem="2G"), Options(mem="2G"))
    COLUMNS = ("result",)

    def pair_on(self, port, server_command, client_command, **how):
        server, client = self.hosts
        return pair.run_pair(server, server_command, client, client_command, port=port, **how)

    # --- qperf

    def qperf(self, test, chances=3):
        """Its server tells the client the port before it listens there, and may come late."""
        server, client = self.hosts
        ran = client.run(f"qperf {server.ipv4} -t 1 -to 60 -cm1 {test}", check=False)
        if ran.code and "Event rejected" in ran.out + ran.err and chances > 1:
            return self.qperf(test, chances - 1)
        self.assertEqual(ran.code, 0, ran.out + ran.err)
        return ran.out

    def test_qperf(self):
        server, client = self.hosts
        # By themselves the halves wait for each other for 5 s. The client tells the server its
        # timeout in a message, which the server awaits with its own.
        task = server.spawn("qperf -lto 60")
        try:
            pair.await_listener(server, QPERF_PORT, task)
            # UC and UD of qperf know no GRH, hence no RoCE.
            for test in ("rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw",
                         "rc_rdma_write_lat", "rc_rdma_write_bw", "rc_rdma_write_poll_lat",
                         "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap",
                         "ver_rc_fetch_add"):
                with self.cell(f"qperf {test}", "result"):
                    self.assertRegex(self.qperf(test), r"=  *[\d.]+ [A-Za-z/]")
        finally:
            client.run(f"qperf {server.ipv4} quit", check=False)
            task.give_up()

    # --- fio

    def test_fio(self):
        """Its engine for RDMA, which moves data between the memories of two processes. With the
        verb "send" its client allows no RNR retry, and does not wait for the server's receives."""
        server, client = self.hosts
        job = f"fio --name=job --ioengine=rdma --port={FIO_PORT} --bs=64k --size=64m --iodepth=8"
        for verb in ("write", "read"):
            with self.cell(f"fio, {verb}", "result"):
                said = self.pair_on(
                    FIO_PORT, f"{job} --rw=read",
                    f"{job} --rw=write --verb={verb} --hostname={server.ipv4}",
                    ready=pair.await_cm_listener)
                self.assertRegex(said, r"io=64\.0MiB")

    # --- libfabric

    def test_fabric_finds_the_card(self):
        for host in self.hosts:
            with self.cell(f"fi_info on {host.name}", "result"):
                said = host.run("fi_info -p verbs").out
                self.assertIn(f"domain: {self.devices[host.name]}", said)
                for kind in ("FI_EP_MSG", "FI_EP_DGRAM"):
                    self.assertIn(kind, said)

    def test_fabric_pingpong(self):
        server = self.hosts[0]
        for provider, endpoint in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm")):
            with self.cell(f"fi_pingpong {provider}, {endpoint}", "result"):
                command = f"{FABRIC_EVENTS} fi_pingpong -p '{provider}' -e {endpoint} -c -I 20"
                said = self.pair_on(FABRIC_PORT, command, f"{command} {server.ipv4}")
                self.assertRegex(said, r"1m\s+20\s")

    # --- UCX

    def ucx(self, host, transports):
        return ucx(f"{self.devices[host.name]}:1", transports)

    def test_ucx_finds_the_card(self):
        for host in self.hosts:
            with self.cell(f"ucx_info on {host.name}", "result"):
                said = host.run("ucx_info -d").out
                device = self.devices[host.name]
                for transport in ("rc_verbs", "ud_verbs"):
                    self.assertRegex(said, rf"Transport: {transport}\n#\s+Device: {device}:1")

    def test_ucx_perftest(self):
        server, client = self.hosts
        tests = (("tag_lat", 8), ("tag_bw", 65536), ("tag_bw", 1 << 20), ("ucp_put_bw", 65536),
                 ("ucp_get", 65536), ("ucp_fadd", 8), ("stream_bw", 4096), ("ucp_am_lat", 64))
        for (test, size), transport in self.covering(tests, TRANSPORTS):
            with self.cell(f"ucx_perftest {test} {size} B, {transport}", "result"):
                said = self.pair_on(
                    UCX_PORT, f"{self.ucx(server, transport)} ucx_perftest -n 100",
                    f"{self.ucx(client, transport)} ucx_perftest {server.ipv4} -t {test} "
                    f"-s {size} -n 100 -w 10")
                self.assertRegex(said, r"Final:\s+100\s")

    def test_ucx_sleeps(self):
        """Workers that sleep until the card has an event for them."""
        server, client = self.hosts
        for transport in TRANSPORTS:
            with self.cell(f"ucx_perftest -E sleep, {transport}", "result"):
                said = self.pair_on(
                    UCX_PORT, f"{self.ucx(server, transport)} ucx_perftest -E sleep -n 1000",
                    f"{self.ucx(client, transport)} ucx_perftest {server.ipv4} -t tag_lat "
                    "-E sleep -n 1000 -w 10")
                self.assertRegex(said, r"Final:\s+1000\s")

    # --- MPI

    def test_mpi(self):
        """Two ranks on each host, by Open MPI over UCX over the card alone."""
        prepare_mpi(self.hosts, MPI_PROGRAM)
        device, = set(self.devices.values())
        for transport, parts in MPI_RUNS:
            with self.cell(f"Open MPI, {', '.join(parts)}: {transport}", "result"):
                said = mpirun(self.hosts, 2, mpi_over_ucx(f"{device}:1", transport),
                              f"{MPI_PROGRAM.name} {' '.join(parts)}")
                for part in parts:
                    self.assertIn(f"{part}: ok with 4 ranks on 2 hosts", said)
                self.assertFalse(re.search("error|warning", said, re.IGNORECASE), said)


if __name__ == "__main__":
    main()
