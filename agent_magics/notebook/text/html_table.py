"""Static HTML: tables whose every value is escaped, no script, no style sheet."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape


def still(html: str) -> str:
    """Wrap static HTML for an output: what stands in it is text, and holds no formulas.

    The first class is for MathJax 3 (JupyterLab), the second for MathJax 2 (nbconvert).
    """
    return f'<div class="mathjax_ignore tex2jax_ignore">{html}</div>'


def html_table(
    rows: Sequence[Sequence[str]],
    *,
    head: Sequence[str] = (),
    numbers: Collection[int] = (),
) -> str:
    """Make a table of texts; the columns of `numbers`, from 0, stand to the right.

    JupyterLab aligns all cells to the right unless they say themselves how they stand. "" where
    there is no row.
    """
    if not rows:
        return ""
    sides = ["right" if at in numbers else "left" for at in range(len(rows[0]))]

    def row_of(cells: Sequence[str], tag: str) -> str:
        made = (
            f'<{tag} style="text-align: {side}">{escape(cell)}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{''.join(made)}</tr>"

    heading = f"<thead>{row_of(head, 'th')}</thead>" if head else ""
    body = "".join(row_of(cells, "td") for cells in rows)
    return f"<table>{heading}<tbody>{body}</tbody></table>"
