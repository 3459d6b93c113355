"""A policy as one HTML file that asks for one measurement after the other."""

from pathlib import Path

from lodim.acquisition.tree import Tree, words_of
from lodim.page.page import filled, save, script

TEMPLATE = Path(__file__).with_name("page.html")


def write(policy, tree: Tree, path) -> None:
    """Write an HTML file that asks for one measurement after the other, as in a Tree."""
    text = filled(
        TEMPLATE,
        title=f"What to measure next: {policy.design.formula}",
        agreement=f"{tree.agreement:.0%}",
        rows=tree.root.rows,
        summary=policy.summary().as_html(),
        tree=script(_plain(tree, tree.root)),
    )
    save(text, path)


def _plain(tree, node):
    return {
        "kind": node.kind,
        "items": list(node.items),
        "price": float(f"{node.price:.4g}"),
        "rows": node.rows,
        "answer": words_of(tree.heads, node.answer),
        "branches": [[text, _plain(tree, branch)] for text, branch in node.branches],
    }
