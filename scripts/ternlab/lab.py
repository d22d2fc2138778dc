# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab: some hosts, one wire, and a folder that remembers them."""

import concurrent.futures
import contextlib
import json
import shutil

from . import parts, paths
from .errors import LabError
from .host import Host, Options
from .image import Image
from .process import Process
from .progress import step
from .wire import Wire

STATE = "lab.json"


class Lab:
    def __init__(self, name="lab"):
        self.name = name
        self.folder = paths.runtime(name)
        self.logs = paths.logs(name)
        self.fault_log = self.logs / "faults.jsonl"
        self.hosts = []
        self.wire = Wire(self.folder)

    # --- life

    def up(self, hosts, owned=False, packages=(), topology=None):
        """Boots a host for each Options. An owned lab dies with this process. With packages,
        files of Debian's, the hosts have these installed and nothing that is built here. With a
        topology, a file, the hosts are those that topology.hosts() makes of it."""
        self._claim()
        if topology:
            shutil.copyfile(topology, self.wire.topology)
        try:
            image = Image.get(packages)
            if any(options.load and options.nic == "tern" for options in hosts):
                parts.require_module(image)
            archive = parts.archive(image)
            self.wire.start(self.logs / "wire.log", owned)
            for index, options in enumerate(hosts, 1):
                host = Host(index, image, options, self.folder, self.logs / f"host{index}.log")
                self.hosts.append(host)
                host.start(self.wire, owned)
            self._save(image)
            with step(f"starting {len(hosts)} hosts"):
                self.each(lambda host: host.wait_ready(archive))
            self._save(image)
            if topology:
                self._spread_names()
            with step("giving them their addresses"):
                self.each(self._configure, [host for host in self.hosts if host.options.load])
        except BaseException:
            self.down()
            raise

    def down(self):
        with step("taking the lab down"):
            self._down()

    def _down(self):
        if self.hosts:
            self.each(Host.stop)
        self.wire.stop()
        self.hosts = []
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.folder.parent.rmdir()  # unless other labs are there

    @classmethod
    def find(cls, name="lab"):
        """The lab of that name, which must be up."""
        lab = cls(name)
        if not lab._load():
            raise LabError(f"there is no lab \"{name}\" here; `{paths.COMMAND} up` starts it")
        return lab

    @classmethod
    def all(cls):
        """Those of this checkout that are up, or were until their processes died."""
        labs = [cls(state.parent.name) for state in sorted(paths.runtime("").glob(f"*/{STATE}"))]
        return [lab for lab in labs if lab._load()]

    def _spread_names(self):
        """In place of the names that the image has, which are those of hosts by number."""
        known = [("localhost", "127.0.0.1"), ("localhost", "::1"),
                 *(entry for host in self.hosts for entry in host.names())]
        table = "".join(f"{address} {name}\n" for name, address in known)
        self.each(lambda host: host.write_file("/etc/hosts", table.encode()))

    @staticmethod
    def _configure(host):
        try:
            host.configure()
        except LabError as error:
            host.check_alive()
            raise LabError(f"{host.name}: its network card did not come up\n{error}\n"
                           f"{host.last_words()}") from None

    # --- its hosts

    def each(self, action, hosts=None):
        """action(host) for all at the same time; the first failure is raised when all are done."""
        hosts = self.hosts if hosts is None else hosts
        with concurrent.futures.ThreadPoolExecutor(max(1, len(hosts))) as pool:
            return [done.result() for done in [pool.submit(action, host) for host in hosts]]

    def host(self, name):
        for host in self.hosts:
            if name in (host.name, str(host.index)):
                return host
        raise LabError(f"no host \"{name}\"; there are " + ", ".join(h.name for h in self.hosts))

    def select(self, names):
        """"all", or hosts separated by commas."""
        return self.hosts if names == "all" else [self.host(name) for name in names.split(",")]

    # --- its memory

    def _claim(self):
        if self._load():
            if any(host.process.alive() for host in self.hosts):
                self.hosts = []
                raise LabError(f"lab \"{self.name}\" is up already; `{paths.COMMAND} down` ends it")
            self.down()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, mode=0o700)
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir(parents=True)

    def _save(self, image):
        state = {
            "image": str(image.folder),
            "wire": self.wire.process.to_json(),
            "hosts": [host.to_json() for host in self.hosts],
        }
        fresh = self.folder / f"{STATE}.new"
        fresh.write_text(json.dumps(state, indent=2), encoding="utf-8")
        fresh.replace(self.folder / STATE)

    def _load(self):
        try:
            state = json.loads((self.folder / STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return False
        image = Image(state["image"])
        self.wire = Wire(self.folder, Process.from_json(state["wire"]))
        self.hosts = [
            Host(saved["index"], image, Options(**saved["options"]), self.folder,
                 self.logs / f"host{saved['index']}.log",
                 Process.from_json(saved["process"]), saved["port"])
            for saved in state["hosts"]]
        return True
