"""The embedded model: a llama.cpp server of our own on this machine, one a provider."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from agent_magics.core.chat import ChatEvent, ChatRequest, ModelInfo, Retrying
from agent_magics.core.errors import ProviderError
from agent_magics.providers.embedded.weights import (
    EMBEDDED,
    MODEL_NAME,
    PULL_HINT,
    TRAINED_TOKENS,
    find_weights,
)
from agent_magics.providers.http.endpoint import Timeouts
from agent_magics.providers.openai_chat.provider import OpenAICompatible
from agent_magics.providers.presets import Quirks

IDLE_S = 15 * 60.0
START_S = 120.0
STOP_S = 2.0
# It may lose the thread and repeat itself for as long as its window has room, which takes minutes.
DEMO_ANSWER_TOKENS = 768
# Requests queue behind each other, and a full window takes a slow machine minutes to read.
TIMEOUTS = Timeouts(first_token_s=900.0, between_tokens_s=120.0)
_SCRIPT = Path(__file__).with_name("server_script.py")


class EmbeddedServer:
    """One running server process: started at once, ended by `stop`, or by itself (decision 65).

    Starting blocks for as long as the weights load: call it on a thread. Raises `ProviderError`
    that says why it can't start.
    """

    def __init__(self, weights: Path, *, n_ctx: int, idle_s: float = IDLE_S) -> None:
        _check(weights)
        self.token = secrets.token_urlsafe(24)
        self.owner = os.getpid()
        self.process = _launched()
        self.port = self._begin(
            {
                "weights": str(weights),
                "n_ctx": n_ctx,
                "token": self.token,
                "owner": self.owner,
                "idle_s": idle_s,
            }
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def is_alive(self) -> bool:
        """Tell whether it runs and is ours: a forked child has none."""
        return self.owner == os.getpid() and self.process.poll() is None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Keep it from ending for idleness while a request runs."""
        self._tell(b"+\n")
        try:
            yield
        finally:
            self._tell(b"-\n")

    def stop(self) -> None:
        """End the process and wait for it, at most two seconds nicely."""
        if self.owner != os.getpid():
            return
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _begin(self, settings: dict[str, Any]) -> int:
        self._tell(json.dumps(settings).encode() + b"\n")
        too_long = threading.Timer(START_S, self.process.kill)
        too_long.start()
        try:
            line = self.process.stdout.readline() if self.process.stdout else b""
        finally:
            too_long.cancel()
        answer = json.loads(line) if line.strip() else {}
        if "port" in answer:
            return int(answer["port"])
        self.stop()
        why = answer.get("error") or f"it ended with code {self.process.returncode}"
        raise ProviderError(
            f"The server of the embedded model can't start: {why} ({settings['weights']})."
        )

    def _tell(self, line: bytes) -> None:
        if self.process.stdin is not None and not self.process.stdin.closed:
            with suppress(OSError):  # it has ended; the request will say so
                self.process.stdin.write(line)
                self.process.stdin.flush()


class EmbeddedProvider:
    """The model in a GGUF file, served by a process that starts at the first request.

    `n_ctx`: its window in tokens. The demo model's own template drops tools in silence, so they
    are left out of its requests (`has_tools`), and it ends an answer whose length nobody limited
    after `DEMO_ANSWER_TOKENS`. `weights` None: they are looked for at each use,
    and a request without them says how to pull them.
    """

    def __init__(
        self,
        weights: Path | None,
        *,
        provider_id: str = EMBEDDED,
        model_name: str = MODEL_NAME,
        n_ctx: int = TRAINED_TOKENS,
        has_tools: bool = False,
        is_demo: bool = True,
        idle_s: float = IDLE_S,
    ) -> None:
        self._weights = weights
        self._info = ModelInfo(
            name=model_name,
            provider=provider_id,
            context_window=n_ctx,
            has_tools=has_tools,
            has_vision=False,  # a file of weights alone has no eyes
            is_demo=is_demo,
        )
        self._n_ctx = n_ctx
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._server: EmbeddedServer | None = None
        self._client: OpenAICompatible | None = None
        self._closings = 0

    @property
    def provider_id(self) -> str:
        """The prefix in `provider:model`."""
        return self._info.provider

    @property
    def server(self) -> EmbeddedServer | None:
        """The running process, if there is one."""
        return self._server

    async def models(self) -> Sequence[ModelInfo]:
        """Name the model, if its weights and its runtime are here."""
        weights = self._weights or find_weights()
        is_here = weights is not None and weights.is_file() and has_runtime()
        return [self._info] if is_here else []

    async def describe(self, model: str) -> ModelInfo:
        """Tell what is known without starting the server."""
        return msgspec.structs.replace(self._info, name=model)

    async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatEvent, None]:
        """Stream one answer (see `core.ports.Provider.chat`); a dead server is started again."""
        is_second = False
        request = self._limited(request)
        closings = self._closings
        while True:
            server, client = await asyncio.to_thread(self._ready, closings)
            has_begun = False
            try:
                with server.busy():
                    async with aclosing(client.chat(request)) as events:
                        async for event in events:
                            has_begun = has_begun or not isinstance(event, Retrying)
                            yield event
            except ProviderError:
                if has_begun or is_second or server.is_alive():
                    raise
                is_second = True
            else:
                return

    async def aclose(self) -> None:
        """End the server; one that is starting ends as soon as it has."""
        self._closings += 1
        client, self._client = self._client, None
        server, self._server = self._server, None
        if client is not None:
            await client.aclose()
        if server is not None:
            await asyncio.to_thread(server.stop)

    def _limited(self, request: ChatRequest) -> ChatRequest:
        if not self._info.is_demo or request.params.max_tokens is not None:
            return request
        params = msgspec.structs.replace(request.params, max_tokens=DEMO_ANSWER_TOKENS)
        return msgspec.structs.replace(request, params=params)

    def _ready(self, closings: int) -> tuple[EmbeddedServer, OpenAICompatible]:
        with self._lock:
            server, client = self._server, self._client
            if server is not None and client is not None and server.is_alive():
                return server, client
            if server is not None:
                server.stop()
            self._check_open(closings)
            server, client = self._started()
            self._server, self._client = server, client
            try:
                self._check_open(closings)
            except ProviderError:
                self._server = self._client = None
                server.stop()
                raise
            return server, client

    def _started(self) -> tuple[EmbeddedServer, OpenAICompatible]:
        weights = _present(self._weights or find_weights())
        server = EmbeddedServer(weights, n_ctx=self._n_ctx, idle_s=self._idle_s)
        client = OpenAICompatible(
            self.provider_id,
            base_url=server.base_url,
            api_key=server.token,
            timeouts=TIMEOUTS,
            quirks=Quirks(tools=self._info.has_tools),
        )
        return server, client

    def _check_open(self, closings: int) -> None:
        """Stop a start that `aclose` has overtaken: nobody would end that server."""
        if self._closings != closings:
            raise ProviderError(f"{self.provider_id} was closed while its server started.")


def has_runtime() -> bool:
    """Tell whether the llama.cpp runtime is installed, without loading it."""
    return importlib.util.find_spec("xllamacpp") is not None


def _present(weights: Path | None) -> Path:
    if weights is None:
        raise ProviderError(f"The weights of the embedded model are not here; {PULL_HINT}")
    return weights


def _check(weights: Path) -> None:
    if not weights.is_file():
        raise ProviderError(f"There is no model file at {weights}; check the path, or {PULL_HINT}")
    if not has_runtime():
        raise ProviderError(
            "Running a model here needs the package xllamacpp, which is not installed (it has no"
            ' build for musl Linux): pip install "agent-magics[local]", or choose another model'
            " with %agent model."
        )


def _launched() -> subprocess.Popen[bytes]:
    """Start the script in a session of its own, out of reach of the kernel's interrupts."""
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(
        subprocess, "CREATE_NEW_PROCESS_GROUP", 0
    )
    return subprocess.Popen(  # noqa: S603 - our own fixed command
        [sys.executable, "-P", str(_SCRIPT)],  # -P: its folder must not shadow other packages
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=flags,
    )
