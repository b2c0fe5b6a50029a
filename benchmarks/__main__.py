"""Run the benchmarks and print one table: `python -m benchmarks [NAME …]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import appending, growing, lasting, loading, projecting, streaming
from benchmarks.table import render

BENCHMARKS = {
    "append": appending.rows,
    "grow": growing.rows,
    "last": lasting.rows,
    "load": loading.rows,
    "project": projecting.rows,
    "stream": streaming.rows,
}


def main() -> None:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    names = parser.parse_args().names or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark called {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    found = []
    for name in names:
        print(f"{name} ...", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="agent-magics-bench-") as folder:
            found += BENCHMARKS[name](Path(folder))
    print(render(found))


if __name__ == "__main__":
    main()
