"""The location of a store, as a person writes it: a path, or a URL whose scheme names a backend."""

from __future__ import annotations

import os
import re
from pathlib import Path

from agent_magics.core.errors import InputValidation

PATH_SCHEME = "sqlite"  # what a plain path means

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)


def scheme_of(location: Path | str) -> str:
    """Return which backend a location names, in lower case and without a driver's name."""
    url = _URL.fullmatch(os.fspath(location))
    return PATH_SCHEME if url is None else url[1].lower().split("+")[0]


def url_rest(location: Path | str) -> str | None:
    """Return what follows `scheme://`; None where the location is a path."""
    url = _URL.fullmatch(os.fspath(location))
    return None if url is None else url[2]


def unsupported(location: Path | str) -> InputValidation:
    """Return the error for a location whose scheme no backend answers for."""
    url = _URL.fullmatch(os.fspath(location))
    scheme = PATH_SCHEME if url is None else url[1]
    return InputValidation(
        f"A ledger in {scheme} can't be used yet; give a path or an sqlite:/// URL."
    )
