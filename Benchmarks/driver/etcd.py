# SPDX-License-Identifier: Apache-2.0
"""A cluster of etcd with one member, and the delays of etcd's own program with it."""

import os
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from processes import MeasurementFailed, Process

START_TIMEOUT = 30  # seconds
KEY = "benchmark"


def free_ports(count: int) -> list[int]:
    with ExitStack() as sockets:
        taken = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in taken]


class Etcd(Process):
    """The only member, on ports and in a directory of its own."""

    def __init__(self, directory: Path):
        for program in ("etcd", "etcdctl"):
            if shutil.which(program) is None:
                raise MeasurementFailed(f"{program} is not installed; script/bootstrap --all installs it")
        directory.mkdir()
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        self.address = client
        self.url = client.replace("http:", "etcd:") + "/settings/benchmark"
        super().__init__(
            ["etcd", "--name", "one", "--data-dir", directory / "data", "--listen-client-urls", client,
             "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
             "--initial-cluster", f"one={peer}", "--logger", "zap", "--log-level", "warn"], directory / "log")
        deadline = time.monotonic() + START_TIMEOUT
        while self.control("get", KEY).returncode != 0:
            if time.monotonic() > deadline:
                raise MeasurementFailed(f"etcd does not start. {self.last_words()}")

    def command(self, *words: str) -> list[str]:
        return ["etcdctl", "--endpoints", self.address, "--command-timeout", "1s", *words]

    def control(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*words), env=self.environment, capture_output=True, text=True)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "ETCDCTL_API": "3"}

    def delays(self, times: int) -> list[float]:
        """Milliseconds from before `etcdctl put` is started to its value being printed by `etcdctl watch`."""
        command = self.command("watch", "--rev", "1", KEY)
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True) as watch:
            try:
                self.control("put", KEY, "first")
                while watch.stdout.readline().strip() != "first":
                    pass
                return [self.delay(watch, f"value {number}") for number in range(times)]
            finally:
                watch.terminate()

    def delay(self, watch: subprocess.Popen, value: str) -> float:
        started = time.monotonic()
        with subprocess.Popen(self.command("put", KEY, value), env=self.environment, stdout=subprocess.DEVNULL):
            while watch.stdout.readline().strip() != value:
                if watch.poll() is not None:
                    raise MeasurementFailed("etcdctl watch has ended")
            return (time.monotonic() - started) * 1000
