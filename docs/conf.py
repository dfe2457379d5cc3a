"""Settings of the site; docs/site.md says how it is made and why so."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("MPLBACKEND", "Agg")

import hck  # noqa: E402

project = "hck"
author = "The hck developers"
copyright = author
release = hck.__version__
version = release

extensions = [
    "myst_parser",  # pages in Markdown
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",  # cards and tabs
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",  # figures of pages
    "plain_docstrings",
    "public_api",
    "repository_links",
]
exclude_patterns = ["_build", "gallery"]  # sphinx-gallery reads the latter itself
suppress_warnings = ["config.cache"]

# Markdown
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
highlight_language = "none"  # of blocks that name no language, such as formulas and commands
default_role = "py:obj"

# The reference; docs/_ext/public_api.py writes its pages
autosummary_generate = False
autodoc_typehints = "none"  # numpydoc says them in words, with shapes
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_validation_checks: set[str] = set()
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

# Figures and the gallery
plot_basedir = "."  # of paths in pages
plot_formats = [("png", 130)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_include_source = False
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r"",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # seconds of whatever machine built the site say nothing
    "write_computation_times": False,
    "only_warn_on_example_error": False,
    "abort_on_example_error": True,
}

# How it looks: everything comes from the site itself, nothing from elsewhere
html_theme = "pydata_sphinx_theme"
html_title = "hck"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse in a folder
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "hck", "image_light": "_static/favicon.svg", "image_dark": "_static/favicon.svg"},
    "github_url": "https://github.com/hck/hck",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "install": [], "comparison": [], "troubleshooting": [], "changelog": []}
html_context = {"default_mode": "auto"}
