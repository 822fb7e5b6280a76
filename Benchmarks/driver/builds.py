# SPDX-License-Identifier: Apache-2.0
"""Compares the service with another build of it, call by call, in one run.

The other build takes part twice, each time with a bus and a state directory of its own, so that the table shows by how
much two equal services differ.
"""

from contextlib import ExitStack
from pathlib import Path
from statistics import median

import table
from measures import FULL_STORE, IN_FLIGHT, ON_ONE_CPU, STORE, Run, smaps, take_turns
from processes import Programs
from subjects import Daemon, store_path
from table import Goal, Row

OURS, REFERENCE, AGAIN = "this build", "the other", "the other again"
FASTER = Goal(least=0.9, text="≥ 0.9")
SHORTER = Goal(most=1.1, text="≤ 1.1")


def builds(run: Run, reference: Path) -> list[Row]:
    """The rows of calls, of the start and of memory."""
    other = Programs(run.programs.products, reference)
    with ExitStack() as started:
        daemons = {
            name: started.enter_context(Daemon(programs, run.directory / f"build{number}"))
            for number, (name, programs) in enumerate([(OURS, run.programs), (REFERENCE, other), (AGAIN, other)])
        }
        for daemon in daemons.values():
            daemon.fill(STORE, 100)
            daemon.fill(f"{STORE}.full", **FULL_STORE)
        rows = []
        for label, in_flight, spread in [
            (ON_ONE_CPU, 1, False), ("one after the other", 1, True), (f"{IN_FLIGHT} in flight", IN_FLIGHT, True),
        ]:
            options = {"in_flight": in_flight, "keys": 100, "spread": spread}
            for method, calls in [("GetValue", 5_000), ("SetValue", 5_000), ("Apply", 500)]:
                if method == "Apply" and in_flight > 1:
                    continue
                options["calls"] = run.scaled(calls, calls // 5) * (4 if in_flight > 1 else 1)
                rows.append(compared(
                    run, f"{method}{' of 100 keys' if method == 'Apply' else ''}, {label}", table.rate, FASTER,
                    {name: lambda daemon=daemon: daemon.load(method, store_path(STORE), **options)["rate"]
                     for name, daemon in daemons.items()}))
        rows.append(compared(run, "GetSnapshot of 1024 keys, 1 MB", table.rate, FASTER, {
            name: lambda daemon=daemon: daemon.load(
                "GetSnapshot", store_path(f"{STORE}.full"), calls=run.scaled(100, 20))["rate"]
            for name, daemon in daemons.items()
        }))
        for daemon in daemons.values():
            daemon.stop()
        rows.append(compared(run, "start to first reply", table.msec, SHORTER, {
            name: lambda daemon=daemon: daemon.programs.run(
                "first-reply", daemon.bus.address, store_path(STORE), *daemon.command())[-1]["msec"]
            for name, daemon in daemons.items()
        }))
        rows.append(compared(run, "private memory, a store of 100 keys loaded", table.kib, SHORTER, {
            name: lambda daemon=daemon: memory(daemon) for name, daemon in daemons.items()
        }))
        return rows


def memory(daemon: Daemon) -> float:
    """The private dirty memory of a service that has just started and answered, in KiB."""
    daemon.restart()
    daemon.load("GetValue", store_path(STORE), calls=100, keys=100, warm_up=0)
    return smaps(daemon.service.pid)["Private_Dirty"]


def compared(run: Run, measure: str, unit, goal: Goal, calls: dict) -> Row:
    """A row that compares the builds, and the other one with itself."""
    found = take_turns(run, measure, calls)
    itself = median(found[AGAIN]) / median(found[REFERENCE])
    row = table.compare(measure, found[OURS], found[REFERENCE], unit, REFERENCE, goal)
    row.other += f"; again: {itself:.2f}"
    return row
