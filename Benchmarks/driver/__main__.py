# SPDX-License-Identifier: Apache-2.0
"""Runs the measures and prints their table. `script/bench` builds what this needs, and calls it."""

import argparse
import datetime
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import table
from builds import builds
from measures import MEASURES, Run, progress
from processes import MeasurementFailed, Programs, end_with_exception


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/bench", description="Measures ubiquitous-stored; see Benchmarks/README.md.")
    parser.add_argument("--rounds", type=positive, help="how often the subjects take turns (5; with --quick 3)")
    parser.add_argument("--quick", action="store_true", help="fewer calls: a look, not a result")
    parser.add_argument(
        "--row", action="append", choices=MEASURES, metavar="NAME", default=[],
        help=f"only these: {', '.join(MEASURES)} (repeatable)")
    parser.add_argument("--products", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--daemon", type=Path, help="measure this ubiquitous-stored instead of building one")
    parser.add_argument(
        "--reference", type=Path, metavar="PROGRAM",
        help="compare with this build of ubiquitous-stored, instead of all of the above")
    parser.add_argument(
        "--baselines-only", action="store_true", help="without ubiquitous-stored: how noisy is it here?")
    options = parser.parse_args()
    for name in ("daemon", "reference"):
        if (program := getattr(options, name)) is not None:
            setattr(options, name, program.resolve())
            if not os.access(program, os.X_OK):
                parser.error(f"{program}: not a program")
    if options.reference is not None and (options.row or options.daemon is None):
        parser.error("--reference compares all calls of two services: leave out --row and --baselines-only")
    return options


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: not a positive number")
    return number


def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f" ({names[0]})" if names else ""


def busy() -> float:
    """The share of CPU time that other processes use, over a second."""
    def times() -> list[int]:
        return [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]

    before = times()
    time.sleep(1)
    spent = [late - early for early, late in zip(before, times())]
    return 1 - (spent[3] + spent[4]) / max(1, sum(spent))


def heading(run: Run, disturbed: float) -> str:
    kind = "a quick look: " if run.quick else ""
    revision = output_of("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    return (
        f"{datetime.date.today()}, {revision + ', ' if revision else ''}Linux {platform.release()} on "
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} CPUs{processor()}, "
        f"state on {output_of('stat', '-f', '-c', '%T', str(run.directory)) or 'an unknown file system'}; "
        f"{kind}medians of {run.rounds} interleaved rounds."
        + (f" Other work kept the CPUs {disturbed:.0%} busy when it began." if disturbed > 0.05 else "")
    )


def measure(name: str, function) -> tuple[list[table.Row], bool]:
    """Returns the rows of a measure, or one that says why it failed."""
    progress(name)
    try:
        return function(), True
    except (MeasurementFailed, OSError) as error:
        progress(f"  failed: {error}")
        return [table.Row(name, "**failed**", str(error).replace("|", "\\|").replace("\n", " "))], False


def main() -> int:
    options = arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_with_exception)
    with tempfile.TemporaryDirectory(prefix="ubiquitous-bench-") as directory:
        daemon = None if options.baselines_only else options.daemon
        run = Run(
            programs=Programs(options.products, daemon),
            directory=Path(directory),
            rounds=options.rounds or (3 if options.quick else 5),
            quick=options.quick,
        )
        disturbed = busy()
        if options.reference is not None:
            measured = [measure("builds", lambda: builds(run, options.reference))]
        else:
            measured = [
                measure(name, lambda function=function: function(run))
                for name, (function, without_daemon) in MEASURES.items()
                if (daemon is not None or without_daemon) and (not options.row or name in options.row)
            ]
        rows = [row for found, _ in measured for row in found]
        print(f"\n{heading(run, disturbed)}\n\n{table.markdown(rows)}")
    return 0 if all(complete for _, complete in measured) else 1


sys.exit(main())
