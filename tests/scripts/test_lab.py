#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What changes a lab, as far as that needs no virtual machine: state, lock, refusals."""

import contextlib
import errno
import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

from ternlab import cli  # noqa: E402
from ternlab.image import Image  # noqa: E402
from ternlab.lab import MAX_HOSTS, MAX_NAME, Lab  # noqa: E402
from ternlab.lock import exclusive  # noqa: E402
from ternlab.process import Process  # noqa: E402
from ternlab.progress import wait_until  # noqa: E402
from ternlab.wire import Refused, Wire  # noqa: E402

ENDED = {"name": "ended", "pid": 1, "birth": None}


class Stateful(unittest.TestCase):
    """Labs whose hosts are processes that sleep."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.base = pathlib.Path(scratch.name)
        for patch in (mock.patch.dict(os.environ, XDG_RUNTIME_DIR=scratch.name),
                      mock.patch("ternlab.paths.BUILD", self.base / "build")):
            patch.start()
            self.addCleanup(patch.stop)
        self.lab = Lab("lab")

    def remember(self, *indexes, wire=None, owner=None, first=1, options=None,
                 stack=None, image="/nowhere"):
        """Writes the state of a lab, with the wire of this process if none is given."""
        self.lab.folder.mkdir(parents=True)
        processes = {}
        for index in indexes:
            log = self.base / "log"
            processes[index] = Process.start(f"host{index}", ["sleep", "600"], log, True)
            self.addCleanup(processes[index].kill)
        (self.lab.folder / "lab.json").write_text(json.dumps({
            "image": str(image), "owner": owner, "first": first, "stack": stack,
            "wire": wire or Process.this("wire").to_json(),
            "hosts": [{"index": index, "port": None, "process": process.to_json(),
                       "options": options or {}}
                      for index, process in processes.items()]}), encoding="ascii")
        return processes

    def state(self):
        path = self.lab.folder / "lab.json"
        return json.loads(path.read_text(encoding="ascii")) if path.exists() else None

    def command(self, *words):
        """The exit code of a command, and what it says."""
        with mock.patch("ternlab.stack.enter"), contextlib.redirect_stderr(io.StringIO()) as said:
            code = cli.main(["--lab", "lab", *words])
        return code, said.getvalue()

    def refused(self, *words):
        """The one line that tells why. Nothing has changed."""
        before = self.state()
        code, said = self.command(*words)
        self.assertEqual((code, said.count("\n")), (1, 1), said)
        self.assertEqual(self.state(), before)
        return said.removeprefix("lab: ").rstrip("\n")


class Kill(Stateful):
    def test_one(self):
        processes = self.remember(1, 2)
        self.assertEqual(self.command("kill", "host1"), (0, ""))
        self.assertFalse(processes[1].alive())
        self.assertTrue(processes[2].alive())
        self.assertEqual(self.refused("kill", "host1"), "host1 is down already")

    def test_a_command_for_it(self):
        """It says at once that the host is down; for all hosts none does anything."""
        self.remember(1, 2)
        self.command("kill", "2")
        for hosts in ("host2", "all"):
            with mock.patch("ternlab.ssh.Ssh.run", side_effect=AssertionError), \
                    mock.patch("ternlab.host.Host.ssh", self.ssh):
                self.assertEqual(self.refused("run", hosts, "--", "true"), "down")

    @property
    def ssh(self):
        return property(self.ssh_of)

    @staticmethod
    def ssh_of(host):
        if not host.process.alive():
            raise cli.LabError("down")
        return host


class Names(Stateful):
    """The name of a lab is that of a folder, which `up` and `down` delete."""

    def parsed(self, *words, **environment):
        """The name that the command line gives, or what is wrong with it."""
        with mock.patch.dict(os.environ, environment), \
                contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                return cli.parse([*words, "down"]).lab
            except SystemExit as refused:
                self.assertEqual(refused.code, 2)
                return said.getvalue()

    def test_valid(self):
        # The longest ones that scenarios give a command (tests/vm), and a node of Slurm.
        for name in ("lab", "a", "vm.pages.Pages.topology",
                     "vm.conformance.bookworm-6.12.Conformance",
                     "vm.shared_memory.6.12.shm.SharedMemory", "node-17", "x" * MAX_NAME):
            self.assertEqual(self.parsed("--lab", name), name)
            self.assertEqual(self.parsed(TERN_LAB=name), name)

    def test_no_other_folder(self):
        for name in ("..", ".", "a/b", "/tmp", "../x", "-x", ".x", "a b", "a\n", "\u00e9",
                     "lab.lock", "x" * (MAX_NAME + 1)):
            for said in (self.parsed(f"--lab={name}"), self.parsed(TERN_LAB=name)):
                self.assertIn("is no name of a lab", said)
        self.assertIn("is no name of a lab", self.parsed("--lab="))

    def test_not_set(self):
        self.assertEqual(self.parsed(TERN_LAB=""), "lab")

    def test_sockets_fit(self):
        """The longest one is ssh's, which has a suffix until it listens."""
        folder = pathlib.Path(f"/run/user/{(1 << 32) - 1}/tern-01234567") / ("x" * MAX_NAME)
        self.assertLessEqual(len(f"{folder}/host{MAX_HOSTS}.ssh.{'x' * 16}"), 107)


class WithoutRuntimeFolder(Stateful):
    """XDG_RUNTIME_DIR is not set: the user has a folder in /tmp, where others may make it first."""

    def setUp(self):
        super().setUp()
        patch = mock.patch("ternlab.paths.TMP", self.base, create=True)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ["XDG_RUNTIME_DIR"] = ""
        self.folder = self.base / f"tern-{os.getuid()}"

    def assert_refused(self):
        for words in (["down"], ["status"], ["list"]):
            self.assertEqual(self.refused(*words), f"{self.folder} is no folder into which only "
                             "you can write: remove it, or set XDG_RUNTIME_DIR")

    def test_made(self):
        for _ in range(2):
            self.assertIn(self.folder, Lab("lab").folder.parents)
            self.assertEqual(self.folder.stat().st_mode & 0o777, 0o700)

    def test_older(self):
        """Older versions made one that all may read."""
        self.folder.mkdir(mode=0o755)
        self.assertIn(self.folder, Lab("lab").folder.parents)

    def test_writable(self):
        self.folder.mkdir()
        for mode in (0o770, 0o777, 0o1777):
            self.folder.chmod(mode)
            self.assert_refused()

    def test_of_another_user(self):
        user = os.getuid() + 1
        self.folder = self.base / f"tern-{user}"
        self.folder.mkdir(mode=0o700)
        with mock.patch("os.getuid", lambda: user):
            self.assert_refused()

    def test_no_folder(self):
        self.folder.symlink_to(self.base, target_is_directory=True)
        self.assert_refused()
        self.folder.unlink()
        self.folder.touch()
        self.assert_refused()


class Values(unittest.TestCase):
    """Options of hosts that QEMU, or the guest's kernel, would refuse late."""

    def refused(self, option, value):
        """The reason."""
        with contextlib.redirect_stderr(io.StringIO()) as said, \
                self.assertRaises(SystemExit) as refusal:
            cli.parse(["up", f"{option}={value}"])
        self.assertEqual(refusal.exception.code, 2)
        return said.getvalue().splitlines()[-1].partition(f"argument {option}: ")[2]

    def test_memory(self):
        """QEMU takes a bare number for MiB in one place and for bytes in another."""
        self.assertEqual(cli.parse(["up"]).mem, "1G")
        for given, taken in (("512M", "512M"), ("2G", "2G"), ("2g", "2G"), ("768", "768M"),
                             (cli.Options.mem, cli.Options.mem)):
            self.assertEqual(cli.parse(["up", "--mem", given]).mem, taken)
        for value in ("", "0", "0G", "-1", "1.5G", "1T", "512K", "1GB", "much", "1G,slots=2",
                      "\u0661G"):
            self.assertEqual(self.refused("--mem", value),
                             f"{value} is no size of memory: a number with M or G, such as 512M")

    def test_ranges(self):
        for option, least, most in (("--mtu", 1280, 9000), ("--smp", 1, 255)):
            for value in (least, most):
                args = cli.parse(["add", option, str(value)])
                self.assertEqual(getattr(args, option.removeprefix("--")), value)
            for value in (least - 1, most + 1, "many", "", "1e3"):
                self.assertEqual(self.refused(option, value),
                                 f"{value} is no number from {least} to {most}")


class Refusals(Stateful):
    def test_no_lab(self):
        for words in (["kill", "host1"], ["restart", "host1"], ["remove", "host1"], ["add"]):
            self.assertEqual(self.refused(*words),
                             'there is no lab "lab" here; `scripts/lab up` starts it')

    def test_unknown_host(self):
        self.remember(1, 3)
        for command in ("kill", "restart", "remove"):
            self.assertEqual(self.refused(command, "host2"),
                             'no host "host2"; there are host1, host3')

    def test_last_host(self):
        self.remember(1)
        self.assertEqual(self.refused("remove", "host1"), 'host1 is the last host of lab "lab"; '
                         "`scripts/lab down` ends the lab")

    def test_topology(self):
        self.remember(1, 2)
        self.lab.wire.topology.touch()
        for words in (["add"], ["remove", "host1"]):
            self.assertEqual(self.refused(*words), f'{words[0]}: the topology of lab "lab" says '
                             "which hosts there are; change its file, and bring the lab up with it")

    def test_too_many(self):
        self.remember(1, 2)
        self.assertEqual(self.refused("add", str(MAX_HOSTS)), f"a lab has at most {MAX_HOSTS} "
                         f"hosts, and these would be {MAX_HOSTS + 2}")
        self.assertEqual(self.refused("add", "8", "--cards", "8"),
                         "a wire has at most 64 cards, and these would be 66")
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            cli.main(["add", "0"])
        self.assertIn("0 is no number of hosts", said.getvalue())

    def test_cards(self):
        """A guest has names and slots for so many."""
        with mock.patch.object(Lab, "up", autospec=True) as up:
            self.assertEqual(self.command("up", "1", "--cards", "8")[0], 0)
            self.assertEqual([host.cards for host in up.call_args.args[1]], [8])
            up.reset_mock()
            with contextlib.redirect_stderr(io.StringIO()) as said, \
                    self.assertRaises(SystemExit) as refusal:
                cli.main(["up", "1", "--cards", "9"])
            up.assert_not_called()
        self.assertEqual(refusal.exception.code, 2)
        # What is wrong is one line, behind the usage.
        self.assertRegex(said.getvalue(), r"\nlab up: error: argument --cards: invalid choice: 9 "
                         r"\(choose from 1, .*, 8\)\n$")

    def test_first_number(self):
        """A lab whose numbers begin later has less room."""
        self.assertEqual(self.refused("up", "--first", "33"),
                         "there is no host33: a lab has hosts up to number 32")
        self.remember(31, first=31)
        self.assertEqual(self.refused("add", "2"), "a lab has hosts up to number 32, from 31 on 2, "
                         "and these would be 3")

    def test_other_machines(self):
        many = self.base / "many.toml"
        many.write_text("switch = [{ name = 'tor' }]\nhost = [{ name = 'h', count = 33 }]\n"
                        "link = [{ ends = ['h*', 'tor'] }]\n", encoding="ascii")
        for words, why in (
                (["--topology", "x.toml", "--tap", "lab0"], "are in its file: .*tap"),
                (["--topology", str(many)], "at most 32 hosts, and these would be 33"),
                (["3", "--first", "31"], "from 31 on 2, and these would be 3")):
            with self.subTest(words=words):
                self.assertRegex(self.refused("up", *words), why)

    def test_owner(self):
        """The hosts of a test end with it, and it has channels to them."""
        parent = Process("owner", os.getppid(), None)
        owner = subprocess.run(
            ["awk", "{ print $22 }", f"/proc/{parent.pid}/stat"], capture_output=True, text=True,
            check=True).stdout
        self.remember(1, 2, owner={**parent.to_json(), "birth": int(owner)})
        for words in (["restart", "host1"], ["remove", "host1"], ["add"]):
            self.assertEqual(self.refused(*words), f'lab "lab" belongs to process {parent.pid}, '
                             "with which it ends; no other process can start hosts in it")

    def test_host_that_has_ended(self):
        self.remember(1, 2)
        self.command("kill", "host1")
        for words in (["cable", "host1", "off"], ["inject", "host1", "hold"], ["query", "host1"],
                      ["why", "host1"]):
            self.assertEqual(self.refused(*words), "host1: its QEMU does not answer: "
                             "[Errno 2] No such file or directory")

    def test_qemu_that_ends(self):
        """It takes the connection, and says nothing."""
        self.remember(1)
        with socket.create_server(str(self.lab.folder / "host1.qmp"), family=socket.AF_UNIX) as qmp:
            closing = threading.Thread(target=lambda: qmp.accept()[0].close())
            closing.start()
            self.addCleanup(closing.join)
            self.assertEqual(self.refused("cable", "host1", "off"),
                             "host1: QEMU went away before its greeting")

    def test_wire(self):
        self.remember(1, 2, wire=ENDED)
        for words in (["restart", "host1"], ["remove", "host1"], ["add"]):
            self.assertEqual(self.refused(*words), 'the wire of lab "lab" has ended; '
                             "`scripts/lab down` and `scripts/lab up` start another one")

    def test_image(self):
        """Before anything is made."""
        image = self.base / "image"
        image.touch()
        for words in (["--package", __file__], ["--kernel", "bzImage"],
                      ["--kernel-options", "quiet"]):
            self.assertEqual(self.refused("up", "--image", str(image), *words),
                             "--image boots what the image has, without --package, --kernel and "
                             "--kernel-options")
        with mock.patch.dict(os.environ):
            self.assertRegex(self.refused("up", "--image", "/nowhere"),
                             "^--image /nowhere is no file, and there is no stack /nowhere; there "
                             "are: bookworm ")

    def test_image_of_a_stack(self):
        """It is the stack of the hosts, as with TERN_STACK."""
        with mock.patch.dict(os.environ), mock.patch.object(Lab, "up", autospec=True) as up:
            self.assertEqual(self.command("up", "--image", "newest")[0], 0)
            self.assertEqual(os.environ["TERN_STACK"], "newest")
        self.assertIsNone(up.call_args.kwargs["disk"])


class Used(Stateful):
    def test_image(self):
        """The cache deletes what nobody has used in a month, but not the image of a lab."""
        image = self.base / "image"
        image.mkdir()
        self.remember(1, 2, image=image)
        for words in (["list"], ["status"], ["run", "host1", "true"], ["kill", "host1"]):
            with self.subTest(words):
                os.utime(image, (0, 0))
                with contextlib.redirect_stdout(io.StringIO()):
                    self.command(*words)
                self.assertLess(time.time() - image.stat().st_mtime, 3600)


class Copy(Stateful):
    def test_paths(self):
        """A colon behind a slash is one of a file's name, as scp has it."""
        self.remember(1)
        for words, given in ((["a", "host1:/tmp"], (["a"], ":/tmp")),
                             (["./trace-12:30.log", "/a:b", "1:/tmp"],
                              (["./trace-12:30.log", "/a:b"], ":/tmp")),
                             (["host1:/tmp/12:30", "./12:30"], ([":/tmp/12:30"], "./12:30"))):
            with mock.patch("ternlab.host.Host.ssh") as ssh:
                self.assertEqual(self.command("copy", *words), (0, ""))
            ssh.copy.assert_called_once_with(*given)
        for words in (["a", "./b:c"], ["host1:a", "host2:b"], ["12:30.log", "host1:"]):
            self.assertEqual(self.refused("copy", *words), "copy between here and one host: write "
                             "its paths as HOST:PATH")


class Seed(Stateful):
    def test_order(self):
        """A rule that the switch refuses leaves the seed and the percentages as they are."""
        def tell(_, command):
            told.append(command)
            if "BAD" in command:
                raise Refused(command, "rule 1: opcode: no")

        self.remember(1)
        for opcode, code, left in (("BAD", 1, []), ("ACK", 0, ["seed 7", "loss 5"])):
            told = []
            with mock.patch.object(Wire, "tell", tell):
                self.assertEqual(self.command("faults", "--seed", "7", "--loss", "5", "--drop",
                                              f"opcode={opcode}")[0], code)
            self.assertEqual(told[1:], [f"rules drop opcode={opcode}", *left])

    def test_value(self):
        """The switch takes numbers of 64 bits."""
        self.assertEqual(cli.parse(["faults", "--seed", str((1 << 64) - 1)]).seed, (1 << 64) - 1)
        for value in ("-1", str(1 << 64), "much"):
            with contextlib.redirect_stderr(io.StringIO()) as said, \
                    self.assertRaises(SystemExit):
                cli.parse(["faults", f"--seed={value}"])
            self.assertIn(f"{value} is no number from 0 to", said.getvalue())


class System(Stateful):
    """What the system refuses, or a program of it, is one line, too, and leaves nothing."""

    def up(self, *words):
        """Why `up` fails."""
        reason = self.refused("up", "1", *words)
        self.assertFalse(self.lab.folder.exists())
        return reason

    def test_no_runtime_folder(self):
        file = self.base / "file"
        file.touch()
        for folder in (file, file / "below", pathlib.Path("/proc/none")):
            with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=str(folder)):
                self.assertRegex(self.up(), rf"^XDG_RUNTIME_DIR: {folder}.*: \w+")
        with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=str(file)):
            for words in (["down"], ["status"], ["kill", "host1"]):
                self.assertRegex(self.refused(*words), "^XDG_RUNTIME_DIR: .*: Not a directory$")

    def test_full_disk(self):
        """The system does not say which one."""
        full = OSError(errno.ENOSPC, "No space left on device")
        with mock.patch("ternlab.lab.Image.get", side_effect=full):
            self.assertEqual(self.up(), f"{full}: that of the cache, of XDG_RUNTIME_DIR, of the "
                             "logs or of the output")

    def test_file_of_another_user(self):
        refusal = PermissionError(errno.EACCES, "Permission denied", "/cache/file")
        with mock.patch("ternlab.lab.Image.get", side_effect=refusal):
            self.assertEqual(self.up(), "/cache/file: Permission denied")

    def test_program_that_fails(self):
        program, image = self.base / "ssh-keygen", self.base / "image"
        image.touch()
        program.write_text("#!/bin/sh\nexit 3\n", encoding="ascii")
        program.chmod(0o755)
        with mock.patch.dict(os.environ, PATH=f"{self.base}:{os.environ['PATH']}"):
            self.assertEqual(self.up("--image", str(image)),
                             "ssh-keygen has failed with exit code 3")

    def test_program_that_is_missing(self):
        image = self.base / "image"
        image.touch()
        with mock.patch.dict(os.environ, PATH=str(self.base)), \
                mock.patch("ternlab.stack.ask", lambda *what: "amd64"):
            self.assertEqual(self.up("--image", str(image)),
                             "ssh-keygen: No such file or directory")


# The ssh of hosts by their ports: one answers, one hangs, one refuses.
SSH = """#!/bin/sh
case $* in
*Port=1*) echo ../../../bus/pci/drivers/tern ;;
*Port=2*) exec sleep 600 ;;
*) echo "Connection refused" >&2; exit 255 ;;
esac
"""


class Status(Stateful):
    """It tells of all hosts, whatever some of them do."""

    def setUp(self):
        super().setUp()
        program = self.base / "ssh"
        program.write_text(SSH, encoding="ascii")
        program.chmod(0o755)
        for patch in (mock.patch.dict(os.environ, PATH=f"{self.base}:{os.environ['PATH']}"),
                      mock.patch("ternlab.cli.STATUS_TIMEOUT", 2)):
            patch.start()
            self.addCleanup(patch.stop)

    def serve_wire(self):
        """A switch that tells of three frames."""
        server = socket.create_server(str(self.lab.folder / "wire.ctl"), family=socket.AF_UNIX)
        self.addCleanup(server.close)

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as client:
                        client.recv(100)
                        client.sendall(b"ok frames=3 direct=0\n")

        threading.Thread(target=answer, daemon=True).start()
        self.addCleanup(server.shutdown, socket.SHUT_RDWR)

    def hosts(self, *ports, **lab):
        self.remember(*range(1, len(ports) + 1), **lab)
        state = self.state()
        for host, port in zip(state["hosts"], ports):
            host["port"] = port
        (self.lab.folder / "lab.json").write_text(json.dumps(state), encoding="ascii")

    def status(self):
        """The exit code, what it tells programs, and lines for people."""
        with contextlib.redirect_stdout(io.StringIO()) as told:
            code, said = self.command("status", "--json")
        self.assertEqual(said, "")
        with contextlib.redirect_stdout(io.StringIO()) as lines:
            self.assertEqual(self.command("status"), (code, ""))
        return code, json.loads(told.getvalue()), lines.getvalue().splitlines()

    def test_all_is_well(self):
        self.hosts(1, 1)
        self.serve_wire()
        code, told, lines = self.status()
        self.assertEqual(code, 0)
        self.assertEqual([host["driver"] for host in told["hosts"]], ["tern", "tern"])
        self.assertFalse([host for host in told["hosts"] if "error" in host])
        self.assertEqual(told["wire"], {"frames": 3, "direct": 0})
        self.assertRegex(lines[1], r"^host2  up, pid \d+, 10.77.0.2 .* \(tern\), ssh port 1$")
        self.assertEqual(lines[2], "wire   frames=3 direct=0")

    def test_hosts_that_do_not_answer(self):
        """One hangs, one has no ssh, one does not yet have a port."""
        self.hosts(2, 3, None, 1)
        self.serve_wire()
        code, told, lines = self.status()
        self.assertEqual(code, 1)
        self.assertEqual([host.get("error") for host in told["hosts"]], [
            "no answer within 2 s", "Connection refused", "host3 is not up", None])
        self.assertEqual([host.get("driver") for host in told["hosts"]], [None, None, None, "tern"])
        self.assertRegex(lines[0], r"^host1  pid \d+, 10.77.0.1 .*: no answer within 2 s$")
        self.assertRegex(lines[3], "^host4  up, ")
        self.assertRegex(lines[4], "^wire   frames=3")

    def test_host_that_is_down(self):
        self.hosts(1, 1)
        self.serve_wire()
        self.command("kill", "host1")
        code, told, lines = self.status()
        self.assertEqual(code, 1)
        self.assertEqual([host["alive"] for host in told["hosts"]], [False, True])
        self.assertRegex(lines[0], "^host1  down; ")

    def test_dead_wire(self):
        self.hosts(1, wire=ENDED)
        code, told, lines = self.status()
        self.assertEqual((code, told["wire"], lines[1]), (1, None, "wire   dead"))

    def test_wire_that_does_not_answer(self):
        self.hosts(1)
        code, told, lines = self.status()
        self.assertEqual((code, told["wire"]), (1, None))
        self.assertRegex(lines[1], "^wire   the wire does not answer: ")
        self.assertRegex(lines[2], "^logs ")


class Changes(Stateful):
    """With hosts that start at once."""

    def setUp(self):
        super().setUp()
        self.failing = False
        for name, how in (("start", self.start), ("wait_ready", self.wait_ready),
                          ("configure", lambda *_: None)):
            patch = mock.patch(f"ternlab.host.Host.{name}", how)
            patch.start()
            self.addCleanup(patch.stop)
        patch = mock.patch("ternlab.lab.parts")
        patch.start()
        self.addCleanup(patch.stop)

    @property
    def start(self):
        def start(host, _wire, owned, _archive):
            self.assertFalse(owned)
            # An owned one would die with its thread.
            host.process = Process.start(host.name, ["sleep", "600"], self.base / "log", False)
            self.addCleanup(host.process.kill)
        return start

    @property
    def wait_ready(self):
        def wait_ready(host):
            if self.failing:
                raise cli.LabError(f"{host.name} does not boot")
        return wait_ready

    def alive(self):
        return {host.name: host.process.alive() for host in Lab.find("lab").hosts}

    def test_numbers(self):
        """New hosts take what is free first."""
        self.remember(1, 2, 3)
        self.assertEqual(self.command("remove", "host2")[0], 0)
        self.assertEqual(self.alive(), {"host1": True, "host3": True})
        self.assertEqual(self.command("add", "2", "--cards", "2"), (0, "lab: host2, host4 up\n"))
        self.assertEqual([host.options.cards for host in Lab.find("lab").hosts], [1, 2, 1, 2])

    def test_add_for_programs(self):
        self.remember(1)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(self.command("add", "2", "--json"), (0, "lab: host2, host3 up\n"))
        self.assertEqual([(host["name"], host["alive"]) for host in json.loads(said.getvalue())],
                         [("host2", True), ("host3", True)])

    def test_run_for_programs(self):
        """Also on one host, whose output goes to the terminal otherwise."""
        self.remember(1, 2)
        done = subprocess.CompletedProcess([], 3, "out\n", "err\n")
        login = types.SimpleNamespace(run=lambda command: done)
        for hosts, names in (("host1", ["host1"]), ("all", ["host1", "host2"])):
            with contextlib.redirect_stdout(io.StringIO()) as said, \
                    mock.patch("ternlab.host.Host.ssh", login):
                self.assertEqual(self.command("run", "--json", hosts, "--", "false"), (3, ""))
            self.assertEqual(json.loads(said.getvalue()), [
                {"name": name, "status": 3, "stdout": "out\n", "stderr": "err\n"}
                for name in names])

    def test_flap_that_is_interrupted(self):
        """The cable is in again."""
        self.remember(1)
        with mock.patch("ternlab.host.Host.set_cable", autospec=True) as set_cable, \
                mock.patch.object(cli.time, "sleep", side_effect=KeyboardInterrupt), \
                contextlib.suppress(KeyboardInterrupt):
            self.command("cable", "host1", "flap")
        self.assertEqual([call.args[1] for call in set_cable.call_args_list], [False, True])

    def test_stack(self):
        """Hosts that come later are of the stack that the lab was brought up with."""
        def start(wire, *_):
            wire.process = Process.start("wire", ["sleep", "600"], self.base / "log", False)
            self.addCleanup(wire.process.kill)

        with mock.patch.dict(os.environ, TERN_STACK="newest"), \
                mock.patch("ternlab.lab.Image.get", lambda **_: Image("/nowhere")), \
                mock.patch("ternlab.lab.Wire.start", start):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(self.command("up", "1", "--json")[0], 0)
        self.assertEqual([host["name"] for host in json.loads(said.getvalue())], ["host1"])
        for environment in ({"TERN_STACK": ""}, {"TERN_STACK": "newest"}):
            with mock.patch.dict(os.environ, environment):
                self.assertEqual(self.command("add")[0], 0)
        hosts = Lab.find("lab").hosts
        self.assertEqual([host.options.front_end for host in hosts], ["vfio-user"] * 3)
        self.assertEqual(self.state()["stack"], "newest")

    def test_another_stack(self):
        self.remember(1, 2, wire=ENDED, stack="newest")
        with mock.patch.dict(os.environ, TERN_STACK="bookworm"):
            for words in (["add"], ["restart", "host1"], ["status"], ["run", "host1", "true"]):
                self.assertEqual(self.refused(*words), 'lab "lab" is of the stack newest, and '
                                 "TERN_STACK is bookworm; leave it empty, or choose another --lab")
            self.assertEqual(self.command("down")[0], 0)
        self.assertIsNone(self.state())

    def test_failed_add(self):
        """Nothing of it stays."""
        self.remember(1)
        self.failing = True
        code, said = self.command("add", "2")
        self.assertEqual((code, said.count("\n")), (1, 1), said)
        self.assertEqual(self.alive(), {"host1": True})

    def test_failed_restart(self):
        self.remember(1, 2)
        self.failing = True
        self.assertEqual(self.command("restart", "host1")[0], 1)
        self.assertEqual(self.alive(), {"host1": False, "host2": True})
        self.failing = False
        self.assertEqual(self.command("restart", "host1")[0], 0)
        self.assertEqual(self.alive(), {"host1": True, "host2": True})

    def test_at_once(self):
        """None of many commands at the same time undoes what another one did."""
        self.remember(1)
        with mock.patch("ternlab.lock.say"), mock.patch("ternlab.cli.say"):
            commands = [threading.Thread(target=Lab.find("lab").add, args=[[cli.Options()]])
                        for _ in range(6)]
            for command in commands:
                command.start()
            for command in commands:
                command.join()
        self.assertEqual(self.alive(), {f"host{index}": True for index in range(1, 8)})


class Lock(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = pathlib.Path(scratch.name) / "folder/name.lock"

    def test_nothing_stays(self):
        with exclusive(self.path, "waiting"):
            self.assertTrue(self.path.exists())
        self.assertFalse(self.path.parent.exists())

    def test_others_wait(self):
        said, entered = [], threading.Event()

        def other():
            with exclusive(self.path, "waiting"):
                entered.set()

        with mock.patch("ternlab.lock.say", said.append):
            with exclusive(self.path, "waiting"):
                thread = threading.Thread(target=other)
                thread.start()
                self.assertTrue(wait_until(lambda: said, 10))
                self.assertFalse(entered.is_set())
            thread.join()
        self.assertEqual((said, entered.is_set()), (["waiting"], True))

    def test_holder_that_was_killed(self):
        """Its file is no lock any more."""
        self.path.parent.mkdir()
        self.path.touch()
        with mock.patch("ternlab.lock.say", side_effect=AssertionError), \
                exclusive(self.path, "waiting"):
            pass


if __name__ == "__main__":
    unittest.main()
