"""Installed packages that add tools, plugins and providers; some of them are broken."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_magics.session.extensions.packages import extension_names, load_extensions

MODULE = """
from agent_magics import tool
from agent_magics.session.extensions.plugins import PluginBase
from agent_magics.providers.scripted import ScriptedProvider


@tool
def rain(city: str) -> str:
    "Tell how much it rains."
    return f"a lot in {city}"


def weather():
    return [rain, tool(lambda: "sun")] if False else (rain,)


class Watch(PluginBase):
    "Watches."


class Acme(ScriptedProvider):
    provider_id = "acme"


def nothing():
    return None


def broken():
    raise SystemExit("no licence\\nfound")
"""

Installer = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installer:
    """Give a way to install a distribution `acme-tools` that has the given entry points."""

    def installed(points: str) -> None:
        info = tmp_path / "acme_tools-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(points))
        (tmp_path / "acme_tools.py").write_text(MODULE)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "acme_tools", raising=False)
        importlib.invalidate_caches()

    return installed


@pytest.mark.req("P8")
def test_what_a_package_adds_is_found(install: Installer) -> None:
    """Tools as they are or made by a function, plugins and providers by their classes."""
    install(
        """
        [agent_magics.tools]
        rain = acme_tools:rain
        weather = acme_tools:weather
        [agent_magics.plugins]
        watch = acme_tools:Watch
        [agent_magics.providers]
        acme = acme_tools:Acme
        """
    )
    found = load_extensions()
    assert found.faults == []
    assert [tool.name for tool in found.tools] == ["rain", "rain"]
    assert [(p.descriptor.plugin_id, at) for p, at in found.plugins] == [
        ("watch", 'plugin "watch" of acme-tools 1.2')
    ]
    assert [provider.provider_id for provider in found.providers] == ["acme"]


@pytest.mark.req("P8")
def test_names_are_known_without_an_import(install: Installer) -> None:
    """To say which providers there are costs no foreign code."""
    install("[agent_magics.providers]\nacme = acme_tools:Acme\n")
    assert extension_names("providers") == ("acme",)
    assert extension_names("tools") == ()
    assert "acme_tools" not in sys.modules


@pytest.mark.req("P8")
@pytest.mark.parametrize(
    ("group", "point", "says"),
    [
        ("tools", "acme_tools:missing", "AttributeError: module 'acme_tools'"),
        ("tools", "no_such_module:x", "ModuleNotFoundError"),
        ("tools", "acme_tools:broken", "SystemExit: no licence found"),
        ("tools", "acme_tools:nothing", "None is no tool; mark a function with @agent_magics.tool"),
        ("plugins", "acme_tools:nothing", "None is no plugin; it has no descriptor"),
        ("providers", "acme_tools:nothing", "None is no provider of models"),
        ("providers", "acme_tools:Acme", 'its provider is called "acme"; call both the same'),
    ],
)
def test_a_broken_one_is_named_and_the_rest_works(
    install: Installer, group: str, point: str, says: str
) -> None:
    """One line that names the distribution."""
    install(
        f"[agent_magics.{group}]\nbad = {point}\n[agent_magics.tools]\nrain = acme_tools:rain\n"
        if group != "tools"
        else f"[agent_magics.tools]\nbad = {point}\nrain = acme_tools:rain\n"
    )
    found = load_extensions()
    assert [tool.name for tool in found.tools] == ["rain"]
    (fault,) = found.faults
    kind = group.removesuffix("s")
    assert fault.startswith(f'{kind} "bad" of acme-tools 1.2 is left out: ')
    assert says in fault
    assert "\n" not in fault


def test_with_nothing_installed_nothing_is_found() -> None:
    """As in a fresh environment."""
    found = load_extensions()
    assert (found.tools, found.plugins, found.providers, found.faults) == ([], [], [], [])
