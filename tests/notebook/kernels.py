"""Real kernels for tests: started, driven over their sockets, interrupted, shut down."""

from __future__ import annotations

import json
import os
import queue
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 60.0
IPYKERNEL = int(version("ipykernel").split(".")[0])


class Cell:
    """What one executed cell gave: its reply and what was published for it, in order."""

    def __init__(self, reply: dict[str, Any], messages: list[dict[str, Any]]) -> None:
        self.status = reply["content"]["status"]
        self.reply = reply["content"]
        self.messages = messages

    @property
    def text(self) -> str:
        """Everything that was printed."""
        return "".join(m["content"]["text"] for m in self.messages if m["msg_type"] == "stream")

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The contents of one kind of message."""
        return [m["content"] for m in self.messages if m["msg_type"] == kind]

    def outputs(self) -> list[str]:
        """What stands in the cell at its end, in order: streams joined, updates applied."""
        kept: dict[str, str] = {}
        for number, message in enumerate(self.messages):
            content = message["content"]
            match message["msg_type"]:
                case "stream":
                    last = next(reversed(kept), "")
                    key = last if last.startswith("stream") else f"stream {number}"
                    kept[key] = kept.get(key, "") + content["text"]
                case "display_data" | "update_display_data":
                    name = content.get("transient", {}).get("display_id") or f"display {number}"
                    kept[name] = content["data"]["text/plain"]
        return list(kept.values())


class Kernel:
    """A running kernel and its client."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def start(self, code: str, *, cell_id: str | None = None, allow_stdin: bool = True) -> str:
        """Queue a cell; give its message id."""
        message = self.client.session.msg(
            "execute_request",
            {
                "code": code,
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": allow_stdin,
                "stop_on_error": True,
            },
        )
        message["metadata"] = {"cellId": cell_id} if cell_id else {}
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def wait_text(self, text: str) -> None:
        """Wait until a cell that runs has printed `text`; its messages are dropped."""
        seen = ""
        while text not in seen:
            message = self.client.get_iopub_msg(timeout=PATIENCE_S)
            if message["msg_type"] == "stream":
                seen += message["content"]["text"]

    def asked(self) -> str:
        """Wait until a cell asks for a line of input; give its prompt."""
        request = self.client.get_stdin_msg(timeout=PATIENCE_S)
        assert request["msg_type"] == "input_request"
        return str(request["content"]["prompt"])

    def answer(self, *lines: str) -> None:
        """Give lines of input, each when it is asked for."""
        for line in lines:
            self.asked()
            self.client.input(line)

    def finish(self, message_id: str) -> Cell:
        """Wait for a queued cell."""
        messages: list[dict[str, Any]] = []
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE_S)
            if message["parent_header"].get("msg_id") != message_id:
                continue
            messages.append(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE_S)
            if reply["parent_header"].get("msg_id") == message_id:
                return Cell(reply, messages)

    def run(self, code: str, *, cell_id: str | None = None, allow_stdin: bool = True) -> Cell:
        """Run a cell to its end."""
        return self.finish(self.start(code, cell_id=cell_id, allow_stdin=allow_stdin))

    def ok(self, code: str) -> str:
        """Run a cell that must work; give what it printed."""
        cell = self.run(code)
        while cell.status == "aborted":  # an error before it still empties the queue
            cell = self.run(code)
        assert cell.status == "ok", cell.reply
        return cell.text

    def interrupt(self) -> float:
        """Press the button; give the time, to measure from."""
        self.manager.interrupt_kernel()
        return time.monotonic()

    def drop_messages(self) -> None:
        """Forget what was published so far."""
        while True:
            try:
                self.client.get_iopub_msg(timeout=0.1)
            except queue.Empty:
                return


def own_environment(folder: Path) -> dict[str, str]:
    """Make an environment with a ledger and a profile in a folder.

    Without a word of pytest: under it ipykernel leaves the file descriptors alone.
    """
    environ = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return {
        **environ,
        "AGENT_MAGICS_STORE": str(folder / "ledger.db"),
        "IPYTHONDIR": str(folder / "ipython"),
    }


def say(one: Kernel, folder: Path, *steps: Any) -> str:
    """Let a scripted model say this next, in a slot of its own; give the slot's name."""
    script = folder / f"script{time.monotonic_ns()}.yaml"
    script.write_text(json.dumps({"steps": steps}))
    one.ok(f"%config AgentMagics.model = 'scripted:{script}'\n%slot new {script.stem} --switch")
    return script.stem


@contextmanager
def loaded(folder: Path) -> Iterator[Kernel]:
    """Run a kernel with the extension, at work in a folder below this one."""
    work = folder / "work"
    work.mkdir()
    with kernel(own_environment(folder)) as one:
        one.ok(f"import os, json, time\nos.chdir({str(work)!r})\nimport agent_magics")
        one.ok("%load_ext agent_magics")
        yield one


@contextmanager
def kernel(env: dict[str, str]) -> Iterator[Kernel]:
    """Run a kernel that imports the package from the tree."""
    manager = KernelManager(kernel_name="python3")
    assert manager.kernel_spec
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel(env={**env, "PYTHONPATH": str(ROOT)}, cwd=str(ROOT))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE_S)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
