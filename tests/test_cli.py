"""The command `agent-magics`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import agent_magics
from agent_magics import cli
from agent_magics.cli import main
from agent_magics.providers.embedded.weights import FILE_BYTES, FILE_NAME
from tests.providers.loopback import Exchange, free_port, serving


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home without weights, a machine without servers."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{free_port()}")
    for name in ("LMSTUDIO", "LLAMACPP"):
        monkeypatch.setenv(f"AGENT_MAGICS_{name}_URL", f"http://127.0.0.1:{free_port()}/v1")
    return tmp_path / "agent-magics" / "models"


def put_weights(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / FILE_NAME
    with path.open("wb") as whole:
        whole.truncate(FILE_BYTES)
    return path


def test_demo_is_a_conversation_in_two_slots(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ask, derive, ask there; then slots and context."""
    script = tmp_path / "answers.yaml"
    script.write_text(
        "- {text: Tenure and price., usage: {input_tokens: 30, output_tokens: 4}}\n"
        "- They move together.\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("AGENT_MAGICS_MODEL", f"scripted:{script}")
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    for words in (
        f"[default] {cli.QUESTION}",
        "Tenure and price.",
        "30 → 4 tokens",
        f"[option-a] {cli.FOLLOW_UP}",
        "They move together.",
        "option-a  * 1 turn ",
        "from default at turn 1",
        "context of option-a",
        "history",
    ):
        assert words in shown


def test_a_model_does_not_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences could write the clipboard; signs that a terminal lacks end nothing."""
    script = tmp_path / "answers.yaml"
    script.write_text('["\\e]52;c;cm0=\\aHi \\U0001F600", "yes"]', encoding="utf-8")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", terminal)
    assert main(["demo", "--model", f"scripted:{script}"]) == 0
    terminal.flush()
    shown = terminal.buffer.getvalue()
    assert b"?]52;c;cm0=?Hi ?" in shown
    assert b"\x1b" not in shown


def test_demo_that_fails_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence on stderr and a non-zero exit, without a traceback."""
    script = tmp_path / "answers.yaml"
    script.write_text("- {error: auth}\n", encoding="utf-8")
    assert main(["demo", "--model", f"scripted:{script}"]) == 1
    assert capsys.readouterr().err.strip() == "scripted refused the key (401)."
    assert main(["demo", "--model", "scripted:nowhere.yaml"]) == 1
    assert "nowhere.yaml" in capsys.readouterr().err


@pytest.mark.req("dec66")
def test_demo_shows_nothing_that_an_address_hides(capsys: pytest.CaptureFixture[str]) -> None:
    """Terminals are recorded and shared too."""
    place = f"127.0.0.1:{free_port()}/v1"
    model = f"openai:m@http://me:a-password@{place}?code=a-code"
    assert main(["demo", "--model", model]) == 1
    told = capsys.readouterr()
    assert f"model: openai:m@http://{place}\n" in told.out
    assert f"at http://{place}" in told.err
    assert not [part for part in ("a-password", "a-code") if part in told.out + told.err]


def test_no_model_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing answers."""
    assert main(["demo"]) == 1
    assert capsys.readouterr().err.startswith("No model answers: set OPENAI_API_KEY")


def test_path_of_the_demo_model(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file, or how to get it."""
    assert main(["model", "path"]) == 1
    assert "agent-magics model pull" in capsys.readouterr().err
    path = put_weights(home)
    assert main(["model", "path"]) == 0
    assert capsys.readouterr().out.strip() == str(path)


def test_pull_of_what_is_here_fetches_nothing(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says where the file is."""
    path = put_weights(home)
    assert main(["model", "pull"]) == 0
    assert capsys.readouterr().out.startswith(f"already here: {path}")


def test_list_says_what_is_reachable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each provider a line, its models below it."""

    def models(exchange: Exchange) -> None:
        exchange.whole(200, {"data": [{"id": "qwen3:4b", "context_length": 8192}]})

    with serving(models) as local:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{local.server_port}")
        assert main(["model", "list"]) == 0
    shown = capsys.readouterr().out
    assert f"ollama      1 model at 127.0.0.1:{local.server_port}" in shown
    assert "ollama:qwen3:4b" in shown
    assert "8,192 tokens" in shown
    assert "embedded    not here" in shown


def test_progress_is_quiet_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    """A log gets one line, not a hundred."""
    for done in (0, 40_000_000, 92_000_000):
        cli._show_progress(done, 92_000_000)
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["model"], ["nonsense"], ["demo", "--modle", "x"]])
def test_wrong_arguments_show_the_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """As every command does."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: agent-magics" in capsys.readouterr().err


def test_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """`--version`, as commands do."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"agent-magics {agent_magics.__version__}\n"
