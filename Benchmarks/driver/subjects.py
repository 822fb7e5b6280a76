# SPDX-License-Identifier: Apache-2.0
"""The services that are compared, each alone on its bus, and all of them driven by the same program.

Calls one after the other are timed with the client, the bus and the service on one CPU: only one of them has something
to do at a time, and whether the scheduler moves them about makes a factor of two, from run to run. With calls in flight
they run on any CPU.
"""

import shutil
from contextlib import ExitStack
from pathlib import Path

from processes import CPUS, ONE_CPU, Bus, MeasurementFailed, Process, Programs

STORES = "/org/example/UbiquitousStore/v1/self/"


def store_path(identifier: str) -> str:
    """The path of a store, as by sd_bus_path_encode; the identifiers here don't start with a digit."""
    escaped = (c if c.isascii() and c.isalnum() else "".join(f"_{b:02x}" for b in c.encode()) for c in identifier)
    return STORES + "".join(escaped)


class Subject:
    """A service on its own bus. `name` is what the table calls it."""

    name: str

    def __init__(self, programs: Programs, directory: Path):
        directory.mkdir()
        self.programs = programs
        self.directory = directory
        with ExitStack() as started:
            self.bus = started.enter_context(Bus(directory / "bus"))
            self.service = started.enter_context(self.start())
            self.processes = started.pop_all()

    def start(self) -> Process:
        raise NotImplementedError

    def load(self, method: str, path: str, **options) -> dict[str, float]:
        """Runs `load` with these options (`in_flight=64` is `--in-flight 64`)."""
        # On one CPU the figures are steady, and all caches are cold at each call. Spread over all CPUs, they are what a
        # program sees.
        spread = options.pop("spread", options.get("in_flight", 1) > 1)
        cpus = CPUS if spread else ONE_CPU
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
        return self.run("load", path, method, *words, cpus=cpus)[-1]

    def run(self, program: str, *arguments, cpus: set[int] = CPUS) -> list[dict[str, float]]:
        """Runs a program whose first argument is the bus's address. The service has to survive it."""
        self.bus.place(cpus)
        self.service.place(cpus)
        try:
            result = self.programs.run(program, self.bus.address, *arguments, cpus=cpus)
        except MeasurementFailed as error:
            raise MeasurementFailed(f"{error} ({self.service.last_words()})") from error
        if self.service.child.poll() is not None:
            raise MeasurementFailed(f"{self.name} is gone. {self.service.last_words()}")
        return result

    def get(self, **options) -> dict[str, float]:
        return self.load("GetValue", store_path("com.example.benchmarks"), **options)

    def set(self, **options) -> dict[str, float]:
        return self.load("SetValue", store_path("com.example.benchmarks"), **options)

    def fill(self, identifier: str, keys: int, **options):
        """Gives a store of the service this many keys."""
        self.load("SetValue", store_path(identifier), calls=keys, keys=keys, warm_up=0, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.processes.close()
        shutil.rmtree(self.directory)


class Baseline(Subject):
    name = "baseline"

    def start(self) -> Process:
        program = self.programs.products / "baseline"
        path = store_path("com.example.benchmarks")
        return Process([program, self.bus.address, path], self.directory / "baseline.log")


class Xfconfd(Subject):
    name = "xfconfd"

    def start(self) -> Process:
        homes = {f"XDG_{kind}_HOME": str(self.directory / kind.lower()) for kind in ("CONFIG", "CACHE", "DATA")}
        environment = {**homes, "DBUS_SESSION_BUS_ADDRESS": self.bus.address}
        return Process(self.programs.xfconfd, self.directory / "xfconfd.log", environment)

    def get(self, **options) -> dict[str, float]:
        return self.load("GetProperty", "/org/xfce/Xfconf", **options)

    def set(self, **options) -> dict[str, float]:
        return self.load("SetProperty", "/org/xfce/Xfconf", **options)


class Daemon(Subject):
    """`ubiquitous-stored` with a state directory of its own."""

    name = "ubiquitous-stored"

    def start(self) -> Process:
        self.state = self.directory / "state"
        self.state.mkdir(mode=0o700, exist_ok=True)
        return Process(self.command(), self.directory / "ubiquitous-stored.log")

    def command(self) -> list[str]:
        return self.programs.daemon_command(self.bus.address, self.state)

    def stop(self):
        """Stops the service. Its bus and its state stay."""
        self.service.end()
        self.bus.place(CPUS)

    def restart(self):
        self.stop()
        self.service = self.processes.enter_context(self.start())
