"""How Sphinx builds the site: `sphinx-build -n -W -j 2 docs docs/_build` at the top of a checkout."""

import re
from pathlib import Path

from docutils import nodes

import lodim as ld

project = "lodim"
author = "The lodim developers"
copyright = author
release = version = ld.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "conf.py", "vignettes/README.md", "**/.ipynb_checkpoints"]
root_doc = "index"
default_role = "code"

# Pages that compute something are scripts in the percent format, run in their own folder.
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / ".executed")
nb_execution_timeout = 1800  # seconds, of a cell
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the sections Parameters and Returns have the types
autodoc_default_options = {"members": False}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "lodim"
html_static_path = ["_static"]
html_css_files = ["lodim.css"]
html_extra_path = ["llms.txt"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"install": [], "tutorial": []}
html_context = {"default_mode": "auto"}
toc_object_entries_show_parents = "hide"
html_show_sourcelink = False
html_show_search_summary = False  # fetched from each page, which browsers refuse for files


def _leave_out(app, what, name, member, skip, options):
    """Skip members of estimators that come from scikit-learn; its own pages describe them."""
    return True if str(getattr(member, "__module__", "")).startswith("sklearn") else None


def _as_written(app, what, name, member, options, lines):
    """Escape text that is markup in reStructuredText, such as lambda_ and |w|."""
    for i, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...", "..", ":")):
            continue
        parts = re.split(r"(``.*?``|`.*?`_?)", line)
        parts[::2] = [re.sub(r"(?<=\w)_(?!\w)|\|", r"\\\g<0>", part) for part in parts[::2]]
        lines[i] = "".join(parts)


def _without_signature(app, what, name, member, options, signature, returns):
    """Show the signature of a class only for estimators: users do not call other classes."""
    return ("", None) if what == "class" and not name.startswith("lodim.sklearn") else None


def _is_cell(node):
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def _pictures(app, doctree, docname):
    """Describe pictures of cells by their last line, and link small ones on top of the gallery."""
    small = nodes.container(classes=["thumbnails"])
    for i, cell in enumerate(doctree.findall(_is_cell)):
        for image in cell.findall(nodes.image):
            image["alt"] = cell.next_node(nodes.literal_block).astext().splitlines()[-1]
            cell["ids"] = [f"cell-{i}"]
            link = nodes.reference("", "", image.deepcopy(), internal=True, refid=f"cell-{i}")
            small += link
    if docname == "gallery":
        doctree.next_node(nodes.section).insert(2, small)


def _without_compilation(app, doctree, docname):
    """Remove the lines about compilation and progress from the output of cells."""
    for block in list(doctree.findall(nodes.literal_block)):
        if "stderr" in block["classes"] and block.astext().startswith(
            ("compiling kernels", "lodim: ")
        ):
            block.parent.remove(block)


def setup(app):
    app.connect("doctree-resolved", _without_compilation)
    app.connect("doctree-resolved", _pictures)
    app.connect("autodoc-process-docstring", _as_written, priority=900)
    app.connect("autodoc-process-signature", _without_signature)
    app.connect("autodoc-skip-member", _leave_out)
