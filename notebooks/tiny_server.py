"""A server that speaks OpenAI's chat completions and knows three lakes, for the models tutorial.

It stands for a server of your own (vLLM, LM Studio, llama.cpp, a gateway): its answers are fixed,
so that the tutorial's outputs are the same on every machine.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME = "tiny"
ANSWERS = {
    "deepest": "Lake Baikal, in Siberia.",
    "largest": "The Caspian Sea, which is a lake by its water.",
    "highest": "Among those that ships cross: Lake Titicaca.",
}


class TinyServer:
    """Listens at `url` from now on, until `stop`; `asked` counts the questions."""

    def __init__(self) -> None:
        self.asked = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def stop(self) -> None:
        """Stop listening; whoever asks from now on is refused."""
        self._server.shutdown()
        self._server.server_close()


def answer(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Say what the last message wants, or ask for the tool that knows a depth."""
    last = messages[-1]
    if last["role"] == "tool":
        return {"content": f"It is {last['content']} m deep."}
    question = str(last["content"]).lower()
    if "how deep" in question:
        call = {"name": "depth", "arguments": json.dumps({"lake": "Baikal"})}
        return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": call}]}
    found = (text for word, text in ANSWERS.items() if word in question)
    return {"content": next(found, "I only know lakes.")}


def _handler(tiny: TinyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the list of models
            self._send(
                "application/json", json.dumps({"data": [{"id": NAME, "context_length": 8192}]})
            )

        def do_POST(self) -> None:  # a question
            tiny.asked += 1
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = answer(asked["messages"])
            usage = {
                "prompt_tokens": len(json.dumps(asked["messages"])) // 4,
                "completion_tokens": len(json.dumps(said)) // 4,
            }
            finish = "tool_calls" if "tool_calls" in said else "stop"
            chunks = [
                {"choices": [{"index": 0, "delta": said, "finish_reason": None}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
            ]
            events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
            self._send("text/event-stream", "".join([*events, "data: [DONE]\n\n"]))

        def _send(self, kind: str, body: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Say nothing: the notebook shows outputs of its own."""

    return Handler
