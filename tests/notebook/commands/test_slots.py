"""`%slot`: what its lines say and make."""

from __future__ import annotations

import pytest

from tests.notebook.conftest import Notebook


@pytest.mark.req("N4")
def test_a_derived_slot_may_be_readonly(notebook: Notebook) -> None:
    """It shows what its parent had, and can't be asked."""
    notebook.run("%agent hello")
    assert "kept is new, readonly, from default at turn 1" in notebook.run(
        "%slot derive kept --readonly"
    )
    assert notebook.view("kept") == ["hello", "answer 1"]
    assert "read-only" in notebook.run("%agent --slot kept more", fails=True)
    said = notebook.run("%slot derive other --readonly --focused 3", fails=True)
    assert "--focused and --readonly can't both hold" in said


@pytest.mark.req("N4", "dec53")
def test_the_body_of_a_new_slot_takes_values(notebook: Notebook) -> None:
    """By the rules of prompts: filled, kept by `--raw`, told where it can't be read."""
    notebook.shell.user_ns["team"] = "Risk"
    notebook.run("%%slot new filled\nYou review for {{team}}.")
    notebook.run("%%slot new raw --raw\nYou review for {{team}}.")
    assert "{{team[}} is not Python" in notebook.run("%%slot new unread\nFor {{team[}}.")
    assert notebook.session.slot_config("filled").system_prompt == "You review for Risk."
    assert notebook.session.slot_config("raw").system_prompt == "You review for {{team}}."
    said = notebook.run("%%slot new wrong\nFor {{tema}}.", fails=True)
    assert "did you mean team?" in said
    assert "wrong" not in [slot.slot_id for slot in notebook.session.list_slots()]


@pytest.mark.req("N4")
def test_mode_alone_says_how_it_is_written(notebook: Notebook) -> None:
    """One form, which every error repeats."""
    assert notebook.run("%slot mode", fails=True) == (
        "UsageError: %slot mode needs more: %slot mode [NAME] (full | focused [N] | readonly)\n"
    )
