"""A policy as one HTML file that asks for one measurement after the other."""

from pathlib import Path

from lodim.acquisition.tree import Tree, words_of
from lodim.atomic_write import replacing
from lodim.errors import StoreError
from lodim.page import charts
from lodim.page.page import script

TEMPLATE = Path(__file__).with_name("page.html")


def write(policy, tree: Tree, path) -> None:
    """Write a policy's tree of purchases as an HTML file that asks for one value after another."""
    _, jinja2 = charts.libraries()
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        title=f"What to measure next: {policy.design.formula}",
        agreement=f"{tree.agreement:.0%}",
        rows=tree.root.rows,
        summary=policy.summary().as_html(),
        tree=script(_plain(tree, tree.root)),
    )
    try:
        with replacing(path) as file:
            file.write(text.encode("utf-8"))
    except (OSError, TypeError, ValueError) as error:
        raise StoreError(f"the report cannot be written to {path!r}: {error}") from error


def _plain(tree, node):
    """Return a Node of the tree of purchases as plain lists and dicts for the page."""
    return {
        "kind": node.kind,
        "items": list(node.items),
        "price": float(f"{node.price:.4g}"),
        "rows": node.rows,
        "answer": words_of(tree.heads, node.answer),
        "branches": [[text, _plain(tree, branch)] for text, branch in node.branches],
    }
