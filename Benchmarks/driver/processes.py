# SPDX-License-Identifier: Apache-2.0
"""What runs during a measurement: buses, services, and the measuring programs.

Everything is a child of this process, known by its id, and ends when its `with` block is left.
"""

import configparser
import os
import shlex
import subprocess
import time
from pathlib import Path

# Nothing here may run into a limit of the bus, because limits are not measured.
BUS_CONFIGURATION = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
  <limit name="max_incoming_bytes">1000000000</limit>
  <limit name="max_outgoing_bytes">1000000000</limit>
  <limit name="max_message_size">1000000000</limit>
  <limit name="max_connections_per_user">1024</limit>
  <limit name="max_match_rules_per_connection">50000</limit>
  <limit name="max_replies_per_connection">50000</limit>
</busconfig>
"""

END_TIMEOUT = 10  # seconds
MEASUREMENT_TIMEOUT = 600  # seconds

CPUS = os.sched_getaffinity(0)
ONE_CPU = {max(CPUS)}


class MeasurementFailed(Exception):
    """A measuring program has ended with an error, or a service is not as it should be."""


class Process:
    """A child process. Its output goes to a file beside its other files."""

    def __init__(self, command, log: Path, environment=None):
        self.log = log
        with log.open("ab") as output:
            self.child = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {})},
            )

    @property
    def pid(self) -> int:
        return self.child.pid

    def place(self, cpus: set[int]):
        """Sets the CPUs on which it may run, with its present and future threads."""
        for task in Path(f"/proc/{self.pid}/task").glob("*"):
            try:
                os.sched_setaffinity(int(task.name), cpus)
            except ProcessLookupError:
                pass  # The thread has ended meanwhile.

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        status = self.child.poll()
        ended = f"; it has ended with status {status}" if status is not None else ""
        return f"{self.log.name}: {' / '.join(lines[-3:]) or 'nothing written'}{ended}"

    def end(self):
        if self.child.poll() is None:
            self.child.terminate()
        try:
            self.child.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Bus(Process):
    """A dbus-daemon of its own."""

    def __init__(self, directory: Path):
        directory.mkdir()
        socket = directory / "bus"
        configuration = directory / "bus.conf"
        configuration.write_text(BUS_CONFIGURATION.format(socket=socket))
        self.address = f"unix:path={socket}"
        ready, writable = os.pipe()
        try:
            # It prints its address when it listens.
            self.log = directory / "bus.log"
            with self.log.open("ab") as output:
                self.child = subprocess.Popen(
                    ["dbus-daemon", f"--config-file={configuration}", "--nofork", "--nopidfile", "--nosyslog",
                     f"--print-address={writable}"],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[writable],
                )
        finally:
            os.close(writable)
        with os.fdopen(ready) as pipe:
            if not pipe.readline():
                self.end()
                raise MeasurementFailed(f"dbus-daemon does not start. {self.last_words()}")


class Screen(Process):
    """An X server without a screen, which nothing else uses. Its number is in `display`."""

    def __init__(self, directory: Path):
        number = directory / "display"
        with number.open("wb") as output:
            self.log = directory / "xvfb.log"
            with self.log.open("ab") as log:
                self.child = subprocess.Popen(
                    # Without -noreset it would restart when the last window is gone, and take no connections meanwhile.
                    ["Xvfb", "-displayfd", "1", "-screen", "0", "900x700x24", "-nolisten", "tcp", "-noreset"],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=log)
        deadline = time.monotonic() + END_TIMEOUT
        while not number.read_text().endswith("\n"):
            if self.child.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise MeasurementFailed(f"Xvfb does not start. {self.last_words()}")
            time.sleep(0.01)
        self.display = ":" + number.read_text().strip()


class Programs:
    """The package's products, and the other services that are installed."""

    def __init__(self, products: Path, daemon: Path | None):
        self.products = products
        self.daemon = daemon
        self.xfconfd = find_xfconfd()

    def run(self, name: str, *arguments, cpus: set[int] = CPUS, environment=None) -> list[dict[str, float]]:
        """Runs a measuring program. Returns the values in each line of its output, by name."""
        command = [str(self.products / name), *map(str, arguments)]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MEASUREMENT_TIMEOUT,
                env={**os.environ, **(environment or {})}, preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        except subprocess.TimeoutExpired as error:
            raise MeasurementFailed(f"{name} has not ended after {MEASUREMENT_TIMEOUT} s") from error
        if done.returncode != 0:
            raise MeasurementFailed(done.stderr.strip() or f"{name} ended with status {done.returncode}")
        return [
            {field: float(value) for field, value in (word.split("=") for word in line.split())}
            for line in done.stdout.splitlines()
        ]

    def daemon_command(self, address: str, state: Path) -> list[str]:
        return [
            str(self.daemon), "--bus", address, "--mode", "user", "--state-directory", str(state),
            "--allow-undeclared", "--idle-exit", "0",
        ]


def find_xfconfd() -> list[str] | None:
    """The command of xfconfd, from its service file; `None` if it is not installed."""
    directories = os.environ.get("XDG_DATA_DIRS", "/usr/local/share:/usr/share").split(":")
    for directory in directories:
        file = Path(directory, "dbus-1/services/org.xfce.Xfconf.service")
        if file.is_file():
            service = configparser.ConfigParser(interpolation=None)
            service.read(file)
            return shlex.split(service["D-BUS Service"]["Exec"])
    return None


def end_with_exception(number, _):
    """Makes a signal leave the `with` blocks too."""
    raise SystemExit(128 + number)
