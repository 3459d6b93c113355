"""Reports of a policy: printed, and as an HTML file that asks for one measurement at a time."""

from pathlib import Path

from lodim.acquisition.tree import Tree, words_of
from lodim.design.frame import in_pandas
from lodim.page.page import filled, save, script
from lodim.report.tables import Report, Table, listing
from lodim.text import counted, join_words

TEMPLATE = Path(__file__).with_name("page.html")


def summary(policy) -> Report:
    """Return the printed report of a policy: predictor, trade-off, prices and savings."""
    frame = _features(policy, {"price": "Price", "saving": "Saving alone", "unlocks": "Unlocks"})
    response = policy.design.response
    classes = join_words(map(str, policy.levels)) if policy.levels else "a number"
    loss = "log-loss" if policy.levels else "squared error"
    header = [
        ("Response", f"{response.name}: {classes}"),
        ("Rows", f"{len(policy.y):,}"),
        ("Features", f"{len(policy.design.features):,}"),
        ("Trade-off", f"{policy.trade_off:.4g}"),
        ("Components", f"{len(policy.mixture.label)}"),
        ("Held-out loss", f"{_held_out(policy):.4g}"),
    ]
    notes = [
        f"Trade-off: a purchase must lower the expected {loss} by {policy.trade_off:.4g} per unit "
        "of price.",
        f"Held-out loss: mean {loss} of held-out rows, of which random subsets of features are "
        "known.",
        "Saving alone: expected fall of the loss if only this feature is bought. Features may save "
        "more together.",
        "Unlocks: features whose price falls after this purchase.",
    ]
    return Report("Policy for Buying Features", header, [Table("", frame)], notes)


def text(policy) -> str:
    lines = [
        f"Rows: {len(policy.y):,}; trade-off: {policy.trade_off:.4g} loss per unit of price",
        f"Held-out loss from random subsets of features: {_held_out(policy):.4g}",
    ]
    frame = _features(policy, {"price": "Price", "saving": "Saving alone"})
    return listing(policy.call, lines, Table("", frame), whole="tidy()")


def _features(policy, heads):
    frame = in_pandas(policy.tidy)().set_index("feature").rename_axis(None)
    return frame[[*heads]].rename(columns=heads)


def _held_out(policy):
    return policy.settings["loss"] * policy._loss_unit


def write(policy, tree: Tree, path) -> None:
    """Write an HTML page to `path` that asks for one measurement at a time, in a Tree's order."""
    text = filled(
        TEMPLATE,
        title=f"What to measure next: {policy.design.formula}",
        agreement=f"{tree.agreement:.0%}",
        rows=counted(tree.root.rows, "row"),
        summary=policy.summary().as_html(),
        tree=script(_plain(tree, tree.root)),
    )
    save(text, path)


def _plain(tree, node):
    return {
        "kind": node.kind,
        "items": list(node.items),
        "price": float(f"{node.price:.4g}"),
        "rows": counted(node.rows, "row"),
        "answer": words_of(tree.heads, node.answer),
        "branches": [[text, _plain(tree, branch)] for text, branch in node.branches],
    }
