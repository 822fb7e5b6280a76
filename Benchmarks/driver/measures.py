# SPDX-License-Identifier: Apache-2.0
"""The measures, one function each: what it prepares, what it times in which order, and the rows it makes of that.

Where something is compared, its subjects take turns (A B C A B C …), so that a machine that slows down or speeds up
meanwhile does so for all of them.
"""

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import table
from etcd import Etcd
from processes import ONE_CPU, Bus, MeasurementFailed, Process, Programs, Screen
from subjects import Baseline, Daemon, Subject, Xfconfd, store_path
from table import Goal, Row

STORE = "com.example.benchmarks"
FULL_STORE = {"keys": 1024, "size": 1000}  # Fixture's FULL_STORE_KEYS and FULL_STORE_VALUE_SIZE
IN_FLIGHT = 64
ON_ONE_CPU = "one after the other, all on one CPU"
TURNS = 3  # per round; short, so that a disturbance of one turn doesn't affect the round
QUIET = 11_000  # ms; the first change after 10 s without an upload doesn't wait for more changes


@dataclass
class Run:
    """One run of the benchmarks."""

    programs: Programs
    directory: Path
    rounds: int
    quick: bool

    def scaled(self, full: int, quick: int) -> int:
        return quick if self.quick else full


def progress(text: str):
    print(text, file=sys.stderr, flush=True)


@contextmanager
def subjects(run: Run, *kinds):
    """Starts those of the services that are installed; by name."""
    there = {Baseline: True, Daemon: run.programs.daemon is not None, Xfconfd: run.programs.xfconfd is not None}
    with ExitStack() as started:
        yield {
            kind.name: started.enter_context(kind(run.programs, run.directory / kind.name))
            for kind in kinds
            if there[kind]
        }


def take_turns(run: Run, what: str, calls: dict) -> dict[str, list[float]]:
    """Calls each function in turns, a few times a round. Returns the medians of the rounds, by the function's name."""
    results = {name: [] for name in calls}
    for number in range(run.rounds):
        turns = [[call() for call in calls.values()] for _ in range(TURNS)]
        for name, values in zip(calls, zip(*turns)):
            results[name].append(median(values))
        latest = ", ".join(f"{name} {values[-1]:,.1f}" for name, values in results.items())
        progress(f"  {what}, round {number + 1}: {latest}")
    return results


def in_turn_and_in_flight(run: Run, name: str, operation, goals: dict[int, dict[str, Goal]]) -> list[Row]:
    """Measures `operation(subject, options)`, one call after the other and with 64 in flight."""
    rows = []
    with subjects(run, Baseline, Daemon, Xfconfd) as running:
        for subject in running.values():
            subject.set(calls=100, keys=100, warm_up=0)
        for in_flight, label, calls in [
            (1, ON_ONE_CPU, run.scaled(5_000, 1_000)),
            (1, "one after the other", run.scaled(5_000, 1_000)),
            (IN_FLIGHT, f"{IN_FLIGHT} in flight", run.scaled(20_000, 5_000)),
        ]:
            options = {"in_flight": in_flight, "calls": calls, "keys": 100, "spread": label != ON_ONE_CPU}
            rates = take_turns(run, f"{name}, {label}", {
                subject.name: lambda subject=subject: operation(subject, options)["rate"]
                for subject in running.values()
            })
            rows += [
                table.compare(
                    f"{name}, {label}", rates.get(Daemon.name), rates.get(other), table.rate, other, goal)
                for other, goal in goals[in_flight].items()
            ]
    return rows


def reads(run: Run) -> list[Row]:
    goals = {
        "baseline": Goal(least=0.92, text="≥ 0.92"),
        "xfconfd": Goal(least=2, text="≥ 2"),
    }
    return in_turn_and_in_flight(
        run, "GetValue", lambda subject, options: subject.get(**options), {1: goals, IN_FLIGHT: goals})


def writes(run: Run) -> list[Row]:
    xfconfd = Goal(least=1.5, text="≥ 1.5")
    return in_turn_and_in_flight(run, "SetValue", lambda subject, options: subject.set(**options), {
        1: {"baseline": Goal(least=0.65, text="≥ 0.65"), "xfconfd": xfconfd},
        IN_FLIGHT: {"baseline": Goal(least=0.55, text="≥ 0.55"), "xfconfd": xfconfd},
    })


def keys(run: Run) -> list[Row]:
    """Does a store with many keys answer as fast as one with few?"""
    rows = []
    with Daemon(run.programs, run.directory / "daemon") as daemon:
        sizes = {"1024 keys": 1024, "10 keys": 10}
        for name, number in sizes.items():
            daemon.fill(f"{STORE}.keys{number}", number)
        for in_flight, label, calls in [
            (1, "one after the other", run.scaled(5_000, 1_000)),
            (IN_FLIGHT, f"{IN_FLIGHT} in flight", run.scaled(20_000, 5_000)),
        ]:
            measure = f"GetValue in a store of 1024 keys, {label}"
            rates = take_turns(run, measure, {
                name: lambda number=number: daemon.load(
                    "GetValue", store_path(f"{STORE}.keys{number}"), in_flight=in_flight, calls=calls, keys=number
                )["rate"]
                for name, number in sizes.items()
            })
            rows.append(table.compare(
                measure, rates["1024 keys"], rates["10 keys"], table.rate, "one of 10",
                Goal(least=0.95, text="≥ 0.95")))
    return rows


def apply(run: Run) -> list[Row]:
    """What does a call with 100 keys cost, in calls with one?"""
    rows = []
    with Daemon(run.programs, run.directory / "daemon") as daemon:
        def time_of_one(method: str, calls: int, spread: bool) -> float:
            return 1e3 / daemon.load(method, store_path(STORE), calls=calls, keys=100, spread=spread)["rate"]

        for label, spread in [(ON_ONE_CPU, False), ("one after the other", True)]:
            times = take_turns(run, f"Apply of 100, {label}, in ms", {
                "Apply": lambda: time_of_one("Apply", run.scaled(1_000, 200), spread),
                "SetValue": lambda: time_of_one("SetValue", run.scaled(5_000, 1_000), spread),
            })
            rows.append(table.compare(
                f"Apply of 100 keys, time, {label}", times["Apply"], times["SetValue"], table.msec, "one SetValue",
                Goal(most=4, text="≤ 4")))
    return rows


def snapshot(run: Run) -> list[Row]:
    """The whole store in one message: how much more than sending that message does it take?"""
    with subjects(run, Baseline, Daemon) as running:
        if daemon := running.get(Daemon.name):
            daemon.fill(STORE, **FULL_STORE)

        def time_of_one(subject: Subject) -> float:
            result = subject.load("GetSnapshot", store_path(STORE), calls=run.scaled(100, 20))
            if result["keys"] != FULL_STORE["keys"] or result["bytes"] != FULL_STORE["keys"] * FULL_STORE["size"]:
                raise MeasurementFailed(f"{subject.name} sends {result['keys']:.0f} keys, {result['bytes']:.0f} bytes")
            return 1e3 / result["rate"]

        times = take_turns(run, "GetSnapshot, in ms", {
            name: lambda subject=subject: time_of_one(subject) for name, subject in running.items()
        })
    return [table.compare(
        "GetSnapshot of 1024 keys, 1 MB, time", times.get(Daemon.name), times.get(Baseline.name), table.msec,
        Baseline.name, Goal(most=1.5, text="≤ 1.5"))]


def start(run: Run) -> list[Row]:
    with Daemon(run.programs, run.directory / "daemon") as daemon:
        daemon.fill(STORE, 10)
        daemon.stop()
        times = take_turns(run, "start, in ms", {
            "first reply": lambda: run.programs.run(
                "first-reply", daemon.bus.address, store_path(STORE), *daemon.command())[-1]["msec"],
        })["first reply"]
    spread = f"rounds: {table.msec(min(times))} to {table.msec(max(times))}"
    return [table.single("start to first reply", median(times), table.msec, Goal(most=60, text="≤ 60 ms"), spread)]


def stores(run: Run) -> list[Row]:
    """Does the 10,000th store of a user open as fast as the first? And as one where there are few?"""
    many, few, opened = run.scaled(10_000, 1_000), 41, 20
    prefix = store_path(f"{STORE}.s")
    results = {"few": [], "first": [], "last": []}
    with Daemon(run.programs, run.directory / "many") as large, Daemon(run.programs, run.directory / "few") as small:
        progress(f"  {many} stores")
        for daemon, number in [(large, many), (small, few)]:
            daemon.load(
                "SetValue", prefix, stores=number, calls=number, keys=1, warm_up=0, in_flight=IN_FLIGHT)
        for number in range(run.rounds):
            for daemon, last in [(small, few), (large, many)]:
                daemon.restart()
                opening = daemon.run("first-calls", prefix, last, opened, cpus=ONE_CPU)[-1]
                if daemon is small:
                    results["few"].append(opening["low_usec"])
                else:
                    results["first"].append(opening["low_usec"])
                    results["last"].append(opening["high_usec"])
            latest = ", ".join(f"{name} {values[-1]:.1f}" for name, values in results.items())
            progress(f"  first call on a store, round {number + 1}: {latest}")
    goal = Goal(most=1.2, text="≤ 1.2")
    measure = f"first call on the {many:,}th store"
    return [
        table.compare(measure, results["last"], results["first"], table.usec, "on the 1st", goal),
        table.compare(measure, results["last"], results["few"], table.usec, f"where there are {few}", goal),
    ]


def smaps(pid: int) -> dict[str, int]:
    """The memory of a process in KiB, by the kernel's names."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {name: int(words.split()[0]) for name, words in (line.split(":") for line in lines)}


def memory(run: Run) -> list[Row]:
    calls = run.scaled(1_000_000, 100_000)
    names = [f"{STORE}.memory{number}" for number in (1, 2, 3)]
    with Daemon(run.programs, run.directory / "daemon") as daemon:
        for name in names:
            daemon.fill(name, 10)
        daemon.restart()
        for name in names:
            daemon.load("GetValue", store_path(name), calls=10, keys=10, warm_up=0)

        def after(number: int) -> dict[str, int]:
            """Half of the calls are reads, the other half writes."""
            for method in ("GetValue", "SetValue") if number else ():
                daemon.load(
                    method, store_path(names[0]), calls=number // 2, keys=10, warm_up=0, in_flight=IN_FLIGHT)
            time.sleep(1)
            found = smaps(daemon.service.pid)
            progress(f"  memory after {number:,} calls: {found['Private_Dirty']} KiB private and dirty")
            return found

        loaded = after(0)
        # SQLite's page cache, 512 KiB, is full after this.
        first = calls * 3 // 10
        warm = after(first)
        late = after(calls)
    growth = late["Private_Dirty"] - warm["Private_Dirty"]
    return [
        table.single(
            "private memory, 3 small stores loaded", loaded["Private_Dirty"], table.kib,
            Goal(most=4096, text="≤ 4 MiB"), sizes(loaded)),
        table.single(
            f"… after {first + calls:,} calls", late["Private_Dirty"], table.kib,
            Goal(most=4096, text="≤ 4 MiB"), sizes(late)),
        table.single(
            f"… growth over the last {calls:,} calls", growth, table.kib,
            Goal(most=128, text="none (≤ 128 KiB)"),
            f"over the first {first:,}: {table.kib(warm['Private_Dirty'] - loaded['Private_Dirty'])}"),
    ]


def sizes(found: dict[str, int]) -> str:
    private = found["Private_Dirty"] + found["Private_Clean"]
    return f"with private clean {table.kib(private)}, RSS {table.kib(found['Rss'])}"


def sleeps(pid: int) -> dict[str, int]:
    """How often each thread has gone to sleep."""
    found = {}
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        found[status.parent.name] = int(fields["voluntary_ctxt_switches"])
    return found


def wakeups(run: Run) -> list[Row]:
    """No account, no subscriber, and no connected client."""
    seconds, settle = 10, 5
    with Daemon(run.programs, run.directory / "daemon") as daemon:
        for number in (1, 2, 3):
            daemon.fill(f"{STORE}.rest{number}", 10)
        # An existing database is opened in another way than a new one.
        daemon.restart()
        daemon.load("GetValue", store_path(f"{STORE}.rest1"), calls=10, keys=10, warm_up=0)
        time.sleep(settle)
        before = sleeps(daemon.service.pid)
        time.sleep(seconds)
        after = sleeps(daemon.service.pid)
    slept = sum(after[thread] - before.get(thread, 0) for thread in after)
    came_or_went = len(before.keys() ^ after.keys())
    progress(f"  wakeups: {slept} in {len(after)} threads, {came_or_went} threads came or went")
    return [table.single(
        f"wakeups at rest in {seconds} s", slept + came_or_went, table.count, Goal(most=0, text="0"),
        f"in {len(after)} threads")]


def folder(run: Run) -> list[Row]:
    """Two devices and a folder on a local disk: from set on one to signal on the other."""
    times = run.scaled(10, 3)
    between = run.directory / "folder"
    between.mkdir(mode=0o700)
    try:
        with Daemon(run.programs, run.directory / "a") as a, Daemon(run.programs, run.directory / "b") as b:
            try:
                delays = a.run("sync-delay", b.bus.address, store_path(STORE), f"folder://{between}", times, QUIET)
            except MeasurementFailed as error:
                raise MeasurementFailed(f"{error} (B: {b.service.last_words()})") from error
    finally:
        shutil.rmtree(between)
    values = [delay["msec"] for delay in delays]
    progress(f"  set on A → signal on B, in ms: {', '.join(f'{value:.1f}' for value in values)}")
    return [table.single(
        f"set on A → signal on B through a folder, of {times} after {QUIET // 1000} s each", median(values), table.msec,
        Goal(most=100, text="≤ 100 ms"), f"slowest {table.msec(max(values))}")]


ETCD_COALESCING = 100  # ms; a change within 10 s of another one is uploaded to a cluster after this time


def etcd(run: Run) -> list[Row]:
    """Two devices and a cluster of one member: from set on one to signal on the other, and what etcdctl takes."""
    # The first 15 uploads of an account wait for nothing but coalescing.
    times = run.scaled(12, 4)
    delays, others = [], []
    for number in range(run.rounds):
        with Etcd(run.directory / f"etcd{number}") as cluster:
            with Daemon(run.programs, run.directory / f"a{number}") as a:
                with Daemon(run.programs, run.directory / f"b{number}") as b:
                    lines = a.run("sync-delay", b.bus.address, store_path(STORE), cluster.url, times, 300)
            delays.append(median(line["msec"] for line in lines) - ETCD_COALESCING)
            others.append(median(cluster.delays(times)))
        progress(f"  round {number + 1}: set on A → signal on B {delays[-1]:.1f} ms, etcdctl {others[-1]:.1f} ms")
    return [table.compare(
        f"set on A → signal on B through etcd, less {ETCD_COALESCING} ms of coalescing", delays, others, table.msec,
        "etcdctl put → etcdctl watch", Goal(most=3, text="≤ 3")
    )] + etcd_rates(run) + etcd_idle(run) + etcd_waiting(run)


def etcd_rates(run: Run) -> list[Row]:
    """How many changes a second do 64 devices with accounts of their own make, and how many do bare clients send?"""
    program = run.programs.daemon.with_name("etcd-load")
    if not program.is_file():
        return [Row("64 devices in etcd", "not measured", f"there is no {program.name} beside the service")]
    seconds = run.scaled(5, 2)
    with Etcd(run.directory / "etcd") as cluster:
        def rate(kind: str) -> float:
            places = f"{cluster.url}/{time.monotonic_ns()}"
            return run.programs.run(program, places, kind, IN_FLIGHT, seconds)[-1]["rate"]

        rates = take_turns(
            run, "changes a second", {"devices": lambda: rate("devices"), "bare": lambda: rate("bare")})
    return [table.compare(
        f"{IN_FLIGHT} devices, changes with a poll before each", rates["devices"], rates["bare"], table.rate,
        "bare clients", Goal(least=0.7, text="≥ 0.7"))]


def cpu(pid: int) -> float:
    """The seconds of CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:13]) / os.sysconf("SC_CLK_TCK")


def etcd_idle(run: Run) -> list[Row]:
    """What devices that only wait for changes cost a cluster of one member."""
    devices, seconds = run.scaled(1000, 100), run.scaled(60, 10)
    program = run.programs.daemon.with_name("etcd-load")
    if not program.is_file():
        return [Row("idle devices in etcd", "not measured", f"there is no {program.name} beside the service")]
    with Etcd(run.directory / "etcd-idle") as cluster:
        before = smaps(cluster.pid)["Rss"]
        command = [program, f"{cluster.url}/idle", "idle", str(devices), str(10 * seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
            try:
                if load.stdout.readline().strip() != "ready=1":
                    raise MeasurementFailed("the devices do not come to rest")
                time.sleep(15)  # Until the connections of their requests are closed.
                started, used = time.monotonic(), cpu(cluster.pid)
                time.sleep(seconds)
                share = (cpu(cluster.pid) - used) / (time.monotonic() - started)
                after = smaps(cluster.pid)["Rss"]
            finally:
                load.terminate()
    return [table.single(
        f"{devices:,} devices of as many accounts that wait for changes: memory of etcd", after - before, table.kib,
        note=f"{100 * share:.1f} % of a CPU; {table.kib(before)} before")]


def etcd_waiting(run: Run) -> list[Row]:
    """What a service that only waits for changes in a cluster costs its own machine."""
    seconds, looks, account = run.scaled(120, 10), 50, store_path("")[:-1]
    with Etcd(run.directory / "etcd-waiting") as cluster, Daemon(run.programs, run.directory / "daemon") as daemon:
        daemon.fill(STORE, 10)
        # An existing database is opened in another way than a new one.
        daemon.restart()
        daemon.load("GetValue", store_path(STORE), calls=10, keys=10, warm_up=0)
        pid = daemon.service.pid
        time.sleep(5)
        before = smaps(pid)
        call(daemon, account, "Account", "SignIn", "sa{sv}", cluster.url, 0)
        call(daemon, account, "Account", "SyncNow", "t", 0)
        time.sleep(15)  # Until the connections of its requests are closed.
        slept, used = sleeps(pid), cpu(pid)
        time.sleep(seconds)
        woken, busy = sleeps(pid), cpu(pid) - used
        after, used = smaps(pid), cpu(pid)
        for _ in range(looks):
            call(daemon, account, "Account", "SyncNow", "t", 0)
        look = (cpu(pid) - used) / looks
    wakeups = sum(woken[thread] - slept.get(thread, 0) for thread in woken) + len(slept.keys() ^ woken.keys())
    return [
        table.single(
            "private memory with an account in etcd that waits", after["Private_Dirty"], table.kib,
            note=f"before signing in: {table.kib(before['Private_Dirty'])}; {sizes(after)}"),
        table.single(
            f"… wakeups in {seconds} s", wakeups, table.count, Goal(most=0, text="0"),
            f"in {len(woken)} threads; {1000 * busy:.0f} ms of CPU; a look takes {table.msec(1000 * look)}"),
    ]


def call(subject: Subject, path: str, interface: str, member: str, *arguments):
    """Calls a method of the service."""
    interface = ".".join(filter(None, ["org.example.UbiquitousStore", interface]))
    command = [
        "busctl", f"--address={subject.bus.address}", "--timeout=60", "call", "org.example.UbiquitousStore", path,
        interface, member, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise MeasurementFailed(f"{member}: {done.stderr.strip()} ({subject.service.last_words()})")


def blobs(folder: Path) -> dict[tuple[str, int], int]:
    """The sizes of a folder's files, each of which is written once."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            status = path.stat()
            found[str(path), status.st_ino] = status.st_size
    return found


def change(daemon: Daemon, folder: Path, number: int) -> int:
    """Changes a value of the full store. Returns how many bytes were written to the folder."""
    there = blobs(folder)
    key = f"key-{number * 37 % FULL_STORE['keys']:04}"
    call(daemon, store_path(STORE), "", "SetValue", "sv", key, "s", f"{number:0100}")
    call(daemon, store_path("")[:-1], "Account", "SyncNow", "t", 0)
    return sum(size for name, size in blobs(folder).items() if name not in there)


def sync(run: Run) -> list[Row]:
    """What does a small change in a full store cost, in an account of 20 stores and in one of 200?"""
    rows, changes, account = [], run.scaled(100, 20), store_path("")[:-1]
    full = FULL_STORE["keys"] * FULL_STORE["size"]
    for stores, goal in [(20, Goal(most=4096, text="≤ 4 KB")), (200, Goal(most=16384, text="≤ 16 KB"))]:
        folder = run.directory / "folder"
        folder.mkdir(mode=0o700)
        with Daemon(run.programs, run.directory / "daemon") as daemon:
            prefix, small = store_path(f"{STORE}.s"), stores - 1
            daemon.load("SetValue", prefix, stores=small, calls=10 * small, keys=10, size=30, warm_up=0)
            daemon.fill(STORE, **FULL_STORE)
            before = smaps(daemon.service.pid)["Private_Dirty"]
            call(daemon, account, "Account", "SignIn", "sa{sv}", f"folder://{folder}", 0)
            call(daemon, account, "Account", "SyncNow", "t", 0)
            written = [change(daemon, folder, number) for number in range(changes)]
            memory = smaps(daemon.service.pid)["Private_Dirty"]
        shutil.rmtree(folder)
        progress(f"  {stores} stores, bytes of each change: {written}")
        share = f"a file with all values, by hand: {table.kib(full // 1024)}"
        what = f"written for 100 bytes changed in a store of 1 MB, of {stores}"
        rows += [
            table.Row(f"{what}: median", f"{median(written) / 1024:.1f} KiB", share,
                      f"{median(written) / full:.4f}", goal.text, goal.verdict(median(written))),
            table.Row(f"… at most, of {changes}", f"{max(written) / 1024:.1f} KiB", share,
                      f"{max(written) / full:.4f}", "≤ 80 KB", Goal(most=80_000).verdict(max(written))),
            table.single(
                f"private memory with an account of {stores} stores", memory, table.kib,
                Goal(most=20 * 1024, text="≤ 20 MB"), f"before signing in: {table.kib(before)}"),
        ]
    return rows


def encrypted(run: Run) -> list[Row]:
    """Do calls on a device whose account is encrypted take longer than on one whose account is in plain?"""
    rows = []
    with ExitStack() as started:
        devices = {}
        for name in ["encrypted", "plain"]:
            folder = run.directory / f"folder-{name}"
            folder.mkdir(mode=0o700)
            daemon = devices[name] = started.enter_context(Daemon(run.programs, run.directory / name))
            daemon.set(calls=100, keys=100, warm_up=0)
            options = [1, "encrypt", "b", "true"] if name == "encrypted" else [0]
            call(daemon, store_path("")[:-1], "Account", "SignIn", "sa{sv}", f"folder://{folder}", *options)
            call(daemon, store_path("")[:-1], "Account", "SyncNow", "t", 0)
        for method, operation in [("GetValue", Subject.get), ("SetValue", Subject.set)]:
            # Writes are uploaded during the calls, as in use.
            calls = {"calls": run.scaled(5_000, 1_000), "keys": 100, "spread": False}
            rates = take_turns(run, f"{method}, with an account, {ON_ONE_CPU}", {
                name: lambda daemon=daemon: operation(daemon, **calls)["rate"] for name, daemon in devices.items()
            })
            rows.append(table.compare(
                f"{method} on a device of an encrypted account, {ON_ONE_CPU}", rates["encrypted"], rates["plain"],
                table.rate, "an account in plain", Goal(least=0.95, text="≥ 0.95")))
    return rows


SCHEMA = """\
<schemalist><schema id="com.example.benchmarks" path="/com/example/benchmarks/">
  <key name="number" type="i"><default>0</default></key>
</schema></schemalist>
"""
KEYFILE = "[com/example/benchmarks]\nnumber=42\n"


def gsettings(directory: Path) -> list[Path]:
    """Makes directories with a schema and a value for GSettings; none if its tools aren't installed."""
    compiler = shutil.which("glib-compile-schemas")
    if compiler is None:
        return []
    schemas, configuration = directory / "schemas", directory / "config"
    (configuration / "glib-2.0/settings").mkdir(parents=True)
    schemas.mkdir()
    (configuration / "glib-2.0/settings/keyfile").write_text(KEYFILE)
    (schemas / "benchmarks.gschema.xml").write_text(SCHEMA)
    subprocess.run([compiler, schemas], check=True)
    return [schemas, configuration]


def library(run: Run) -> list[Row]:
    """The client library: from before the fork of an app to its first value, and reads from its memory."""
    with Daemon(run.programs, run.directory / "daemon") as daemon:
        def program(command: str, *arguments) -> dict[str, float]:
            return (run.programs.run("library", command, daemon.bus.address, STORE, *arguments) or [{}])[-1]

        def first() -> float:
            before = time.monotonic_ns()
            return (program("first")["at_nsec"] - before) / 1e6

        program("fill")
        directories = gsettings(run.directory)
        firsts = take_turns(run, "app to its first value, in ms", {"first": first})["first"]
        reads = [program("reads", run.scaled(2_000_000, 200_000), *directories) for _ in range(run.rounds)]
    numbers, texts, others = ([read.get(f"{name}_nsec") for read in reads] for name in ("number", "text", "gsettings"))
    rates = [[1e9 / value for value in values if value] for values in (numbers, others)]
    return [
        table.single(
            "app with the library: start to first value", median(firsts), table.msec, Goal(most=30, text="≤ 30 ms"),
            f"rounds: {table.msec(min(firsts))} to {table.msec(max(firsts))}"),
        table.single("longLong(forKey:)", median(numbers), table.nsec, Goal(most=150, text="≤ 150 ns")),
        table.single("string(forKey:), 16 bytes", median(texts), table.nsec, Goal(most=150, text="≤ 150 ns")),
        table.compare(
            "longLong(forKey:)", rates[0], rates[1], table.rate, "g_settings_get_int",
            Goal(least=5, text="≥ 5")),
    ]


def settings(run: Run) -> list[Row]:
    """UserDefaults beside Foundation's class and GSettings: reads, writes, starts, and another process's changes."""
    place = run.directory / "settings"
    homes = {f"XDG_{kind}_HOME": str(place / kind.lower()) for kind in ("CONFIG", "STATE")}
    for home in homes.values():
        Path(home).mkdir(parents=True)
    with Daemon(run.programs, run.directory / "daemon") as daemon:
        def program(command: str, *arguments) -> list[dict[str, float]]:
            return run.programs.run(
                "settings", command, daemon.bus.address, STORE, *arguments, environment=homes)

        def first(command: str) -> float:
            before = time.monotonic_ns()
            return (program(command)[-1]["at_nsec"] - before) / 1e6

        program("fill")
        directories = gsettings(place / "gsettings")
        calls = [program("calls", run.scaled(1_000_000, 100_000), *directories)[-1] for _ in range(run.rounds)]
        starts = take_turns(run, "app to its first setting, in ms", {
            "ours": lambda: first("first"), "Foundation": lambda: first("first-of-foundation")})
        delays = sorted(settings_delays(run, daemon, homes))
    own, foundation, others = (
        {name: [call.get(f"{prefix}{name}nsec") for call in calls] for name in ("number_", "text_", "set_")}
        for prefix in ("", "foundation_", "gsettings_"))
    others["number_"] = [call.get("gsettings_nsec") for call in calls]
    reading, writing = Goal(most=100, text="≤ 100 ns"), Goal(most=5, text="≤ 5 µs")

    def against(measure: str, name: str, other: dict, other_name: str) -> Row:
        return table.compare(measure, own[name], [v for v in other[name] if v], table.nsec, other_name, Goal())

    added = [ours - theirs for ours, theirs in zip(starts["ours"], starts["Foundation"])]
    return [
        table.single("UserDefaults: integer(forKey:)", median(own["number_"]), table.nsec, reading),
        against("…", "number_", foundation, "Foundation's"),
        against("…", "number_", others, "g_settings_get_int"),
        table.single("string(forKey:), 16 bytes", median(own["text_"]), table.nsec, reading),
        against("…", "text_", foundation, "Foundation's"),
        table.single("set(_:forKey:) returns", median(own["set_"]) / 1e3, table.usec, writing),
        against("…", "set_", foundation, "Foundation's, which stores nothing yet"),
        against("…", "set_", others, "g_settings_set_int"),
        table.single(
            "set → observer in another process", median(delays) / 1e3, table.msec, note=f"of {len(delays)}"),
        table.single("… p99", delays[len(delays) * 99 // 100] / 1e3, table.msec, Goal(most=10, text="≤ 10 ms")),
        table.single(
            "an app's start to its first setting, beyond Foundation's", median(added), table.msec,
            Goal(most=5, text="≤ 5 ms"), f"{table.msec(median(starts['ours']))} in all"),
    ]


def settings_delays(run: Run, daemon: Daemon, homes: dict[str, str]) -> list[float]:
    """The delays from one process's set to another one's observer, in µs."""
    words = [daemon.bus.address, STORE]
    log = run.directory / "follow.log"
    with Process([run.programs.products / "settings", "follow", *words], log, homes) as follower:
        deadline = time.monotonic() + 30
        while "ready" not in log.read_text():
            if time.monotonic() > deadline or follower.child.poll() is not None:
                raise MeasurementFailed(f"The observer is not ready. {follower.last_words()}")
            time.sleep(0.01)
        run.programs.run("settings", "send", *words, run.scaled(1_000, 200), environment=homes)
        follower.child.wait(30)
    return [float(line.split("=")[1]) for line in log.read_text().splitlines() if line.startswith("usec=")]


def command(run: Run) -> list[Row]:
    """The time of a value on the command line, from before the fork to the end of the program."""
    place = run.directory / "command"
    place.mkdir()
    directories = gsettings(place)
    if shutil.which("gsettings") is None or not directories:
        raise MeasurementFailed("There is no gsettings to compare with")
    program = place / "ubiquitousctl"
    # As in the package: a small program, which leaves what it can't do to the service's program.
    source = Path(__file__).parents[2] / "packaging/quick-get/ubiquitousctl.c"
    subprocess.run(
        ["clang", "-O2", f'-DCOMMANDS="{run.programs.daemon}"', source, "-o", program], check=True)
    with Daemon(run.programs, run.directory / "daemon") as daemon:
        environment = {
            **os.environ, "UBIQUITOUS_STORE_BUS": daemon.bus.address, "UBIQUITOUS_STORE_IDENTIFIER": STORE,
            # The backend is the machine's, usually dconf. It reads the schema's default.
            "GSETTINGS_SCHEMA_DIR": str(directories[0]), "XDG_CONFIG_HOME": str(place / "own"),
        }

        def time_of(expected: str, *words) -> float:
            before = time.monotonic_ns()
            done = subprocess.run(words, env=environment, capture_output=True, text=True)
            took = (time.monotonic_ns() - before) / 1e6
            if done.returncode != 0 or done.stdout.strip() != expected:
                raise MeasurementFailed(f"{words[0]}: {done.stdout}{done.stderr}")
            return took

        daemon.fill(STORE, 1)
        call(daemon, store_path(STORE), "", "SetValue", "sv", "number", "x", 42)
        times = take_turns(run, "a value on the command line, in ms", {
            "ubiquitousctl get": lambda: median(time_of("42", program, "get", "number") for _ in range(7)),
            "gsettings get": lambda: median(
                time_of("0", "gsettings", "get", "com.example.benchmarks", "number") for _ in range(7)),
        })
    return [table.compare(
        "ubiquitousctl get", times["ubiquitousctl get"], times["gsettings get"], table.msec, "gsettings get",
        Goal(most=1.5, text="≤ 1.5"))]


WINDOWS = ["ubiquitous-store-settings", "prefs-in-cloud", "prefs-in-storage"]


def windows(run: Run) -> list[Row]:
    """The time from before the fork to the first picture in the window, beside an empty window in C."""
    folder = run.programs.daemon.parent
    if not all((folder / name).exists() for name in WINDOWS) or not (run.programs.products / "empty-window").exists():
        progress("  not built: UBIQUITOUS_STORE_DESKTOP is not set")
        return []
    place = run.directory / "windows"
    place.mkdir()
    with ExitStack() as started:
        daemon = started.enter_context(Daemon(run.programs, run.directory / "daemon"))
        session = started.enter_context(Bus(place / "session"))
        screen = started.enter_context(Screen(place))
        environment = {
            "DISPLAY": screen.display, "DBUS_SESSION_BUS_ADDRESS": session.address, "HOME": str(place),
            "XDG_RUNTIME_DIR": str(place), "XDG_CONFIG_HOME": str(place / "config"),
            "UBIQUITOUS_STORE_BUS": daemon.bus.address, "GSETTINGS_BACKEND": "memory",
            # Drawn by the CPU, and without assistive technology: what these add is the same for all.
            "GSK_RENDERER": "cairo", "GTK_A11Y": "none", "GDK_BACKEND": "x11",
        }

        def opening(program: Path):
            return lambda: run.programs.run(
                "window-time", program, cpus=ONE_CPU, environment=environment)[-1]["msec"]

        calls = {"empty": opening(run.programs.products / "empty-window")}
        calls |= {name: opening(folder / name) for name in WINDOWS}
        for call in calls.values():
            call()
        times = take_turns(replace(run, rounds=3 * run.rounds), "a window opens, in ms", calls)
    return [
        table.compare(
            f"{name}: start to a drawn window", times[name], times["empty"], table.msec,
            "an empty AdwApplicationWindow in C", Goal(most=1.5, text="≤ 1.5"))
        for name in WINDOWS
    ]


# By name, in the table's order. The flag says whether there is something to measure without ubiquitous-stored.
MEASURES = {
    "reads": (reads, True),
    "writes": (writes, True),
    "keys": (keys, False),
    "apply": (apply, False),
    "snapshot": (snapshot, True),
    "start": (start, False),
    "stores": (stores, False),
    "memory": (memory, False),
    "wakeups": (wakeups, False),
    "folder": (folder, False),
    "etcd": (etcd, False),
    "sync": (sync, False),
    "encrypted": (encrypted, False),
    "library": (library, False),
    "settings": (settings, False),
    "command": (command, False),
    "windows": (windows, False),
}
