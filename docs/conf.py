"""How the site is made of these pages: `make docs` builds it into `site`, without a network.

Sphinx, because API pages and search come with it, the search works from a folder without a server, and a dead link
fails the build. The theme is one line.
"""

from __future__ import annotations

from treetop._util.distribution import VERSION

project = "Treetop"
author = "The Treetop authors"
release = VERSION
html_title = f"Treetop {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "index"
default_role = "literal"

myst_heading_anchors = 4

autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
