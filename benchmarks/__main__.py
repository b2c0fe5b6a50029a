"""Run the benchmarks and print their tables: `python -m benchmarks [NAME …]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import (
    appending,
    dispatching,
    exploring,
    fanning,
    growing,
    keeping,
    lasting,
    loading,
    passing,
    projecting,
    reading,
    showing,
    streaming,
    watching,
)
from benchmarks.table import Row, render

BENCHMARKS = {
    "append": appending.rows,
    "dispatch": dispatching.rows,
    "fan": fanning.rows,
    "grow": growing.rows,
    "last": lasting.rows,
    "load": loading.rows,
    "project": projecting.rows,
    "read": reading.rows,
    "show": showing.rows,
    "stream": streaming.rows,
}
TABLES = {
    "cell": passing.table,
    "explore": exploring.table,
    "facts": keeping.table,
    "speed": reading.table,
    "watch": watching.table,
}


def main() -> None:
    """Run the named benchmarks, or all: one table of times, and the tables of what isn't timed."""
    known = [*BENCHMARKS, *TABLES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    names = parser.parse_args().names or known
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no benchmark called {unknown[0]!r}; there are {', '.join(known)}")
    found: list[Row] = []
    tables: list[str] = []
    for name in names:
        print(f"{name} ...", file=sys.stderr)
        if name in TABLES:
            tables.append(TABLES[name]())
            continue
        with tempfile.TemporaryDirectory(prefix="agent-magics-bench-") as folder:
            found += BENCHMARKS[name](Path(folder))
    print("\n\n".join([render(found), *tables] if found else tables))


if __name__ == "__main__":
    main()
