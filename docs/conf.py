"""The site: ``make docs`` builds it into build/site, ``make docs-serve`` shows it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT / "src")]

import source_links  # noqa: E402

import labeldp  # noqa: E402

METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
URLS = METADATA["urls"]
REPOSITORY = URLS["Repository"]

project = "labeldp"
author = "the labeldp contributors"
project_copyright = f"%Y, {author}"
release = version = labeldp.__version__
language = "en"

extensions = [
    "command_reference",
    "myst_parser",
    "short_names",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxext.opengraph",
]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # functions in the gallery's configuration cannot be pickled
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!labeldp\.).*")]  # NumPy and the like are elsewhere

# Markdown
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4

# Reference: a page for each name, from its docstring, which has the types; what mechanisms share is on the page of
# Mechanism, and the methods of scikit-learn are left to scikit-learn
default_role = "py:obj"
autosummary_generate = [
    str(page) for page in DOCS.glob("reference/*.rst")
]  # new ones are seen in an old build, too
autosummary_filename_map = {f"labeldp.{name}": f"labeldp.{name}-class" for name in ("Audit", "Preview")}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "inherited-members": "Mechanism,BaseEstimator,RegressorMixin,TransformerMixin,_SetOutputMixin,"
    "_MetadataRequester,BaseException,ImportError,OSError,Protocol",
    "exclude-members": "as_data, as_text, blocks, check, checked, count_ranges, describe, "
    "dialect_for, fit_table, for_numbers, from_data, html, parse, "
    "prior_charge, public_model, refuse_unknown, remembers, set_score_request, predict_numbers, "
    "with_defaults, with_detected",  # not for users
}
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
napoleon_custom_sections = [("Attributes", "params_style")]


def has_spark() -> bool:
    """Whether the example on a cluster can run here."""
    return bool(find_spec("pyspark") and (shutil.which("java") or os.environ.get("JAVA_HOME")))


# Gallery: examples/ are run by the build; one that did not change is not run again
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_" if has_spark() else r"plot_(?!.*cluster)",  # others are shown, and not run
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "min_reported_time": 1_000_000,
    "thumbnail_size": (480, 320),
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "doc_module": ("labeldp",),
    "reference_url": {"labeldp": None},
    "backreferences_dir": None,
    "write_computation_times": False,
    "first_notebook_cell": "# To install what this needs, take away the # (on a cluster: [plots,spark])\n"
    '# %pip install "labeldp[plots]"',
}
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")  # would be part of a page
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# Looks
html_theme = "pydata_sphinx_theme"
html_title = "labeldp"
html_additional_pages = {"404": "404.html"}
html_static_path = ["_static"]
html_extra_path = ["verify_card.py"]  # as a file to download, at the same address in every version
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/logo.svg"
html_sidebars = {"start": []}
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
html_theme_options: dict[str, Any] = {
    "logo": {"text": "labeldp", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "icon_links": [{"name": "Source", "url": REPOSITORY, "icon": "fa-brands fa-github"}],
    "header_links_before_dropdown": 7,
    "navigation_depth": 3,
    "show_toc_level": 2,
    "use_edit_page_button": True,
    "secondary_sidebar_items": ["page-toc", "edit-this-page"],
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "switcher": {
        "json_url": "_static/versions.json",
        "version_match": os.environ.get("LABELDP_SITE_VERSION", "latest"),
    },
    "check_switcher": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "primary_sidebar_end": [],
}
html_context: dict[str, Any] = {
    "default_mode": "auto",
    "base_path": urlsplit(URLS["Documentation"]).path,
    "edit_page_url_template": REPOSITORY + "/edit/main/{{ source_path or file_name }}",
    "edit_page_provider_name": "GitHub",
}

# A picture for links
ogp_site_url = URLS["Documentation"]
ogp_site_name = "labeldp"
ogp_image = "_static/card.png"
ogp_image_alt = "labeldp: label differential privacy for regression"
ogp_social_cards = {"enable": False}


def write_versions(app: Any, error: Exception | None) -> None:
    """Write the list of versions that a site of one version has; .github/scripts/lay_out_site.py knows all."""
    if app.builder.format == "html" and error is None:
        home = URLS["Documentation"]
        listed = [
            {"name": name, "version": name, "url": f"{home}{name}/", "preferred": name == release}
            for name in ("latest", release)
        ]
        (app.outdir / "_static/versions.json").write_text(json.dumps(listed), encoding="utf-8")


def setup(app: Any) -> None:
    """Let links of Markdown files work on the site as they do in the repository."""
    source_links.setup(app, ROOT, REPOSITORY)
    app.connect("build-finished", write_versions)
