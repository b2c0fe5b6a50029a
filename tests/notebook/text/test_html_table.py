"""Static tables: escaped, and each column on its side."""

from __future__ import annotations

from agent_magics.notebook.text.html_table import html_table


def test_values_are_escaped_and_columns_stand_on_their_sides() -> None:
    """Nothing of a value is HTML; numbers stand to the right, in their heads too."""
    made = html_table([("<b>a", "1"), ('"&', "2")], head=("<i>", "n"), numbers=(1,))
    assert made == (
        '<table><thead><tr><th style="text-align: left">&lt;i&gt;</th>'
        '<th style="text-align: right">n</th></tr></thead><tbody>'
        '<tr><td style="text-align: left">&lt;b&gt;a</td><td style="text-align: right">1</td></tr>'
        '<tr><td style="text-align: left">&quot;&amp;</td>'
        '<td style="text-align: right">2</td></tr></tbody></table>'
    )


def test_no_rows_are_no_table() -> None:
    """A head alone says nothing."""
    assert html_table([], head=("a",)) == ""
