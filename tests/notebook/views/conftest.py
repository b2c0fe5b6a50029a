"""Sessions of scripted models for the views, as the session's own tests have them."""

from __future__ import annotations

from tests.session.conftest import bench

__all__ = ["bench"]
