"""Sessions of scripted models for the views, as the session's own tests have them; their pages."""

from __future__ import annotations

from typing import Any

import pytest

from agent_magics.notebook.views.turn.turn_view import TurnViews
from tests.session.conftest import bench

__all__ = ["bench"]


@pytest.fixture
def views(outputs: object) -> TurnViews:
    return TurnViews()


@pytest.fixture
def told(views: TurnViews, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What pages are told, in order."""
    messages: list[dict[str, Any]] = []
    monkeypatch.setattr(views._widget, "send", messages.append)
    return messages
