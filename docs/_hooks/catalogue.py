"""Make the pages of the catalogue while the site is built: one for all kinds, one for each.

They come from `holdfast.catalogue.KINDS` and from nowhere else, so page and code say the same.
"""

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from holdfast.catalogue import FAMILIES, KINDS, BugKind


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put one entry for each kind under "Catalogue" in the navigation."""
    for section in config.nav or []:
        if "Catalogue" in section:
            section["Catalogue"] += [{family: pages(prefix)} for prefix, family in FAMILIES.items()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; they exist for the length of the build only."""
    files.append(File.generated(config, "catalogue/index.md", content=contents()))
    for kind in KINDS:
        files.append(File.generated(config, path(kind), content=page(kind)))
    return files


def pages(prefix: str) -> list[dict[str, str]]:
    """The entries of one family, which the sidebar folds away."""
    return [{f"{k.code} {k.name}": path(k)} for k in KINDS if k.code.startswith(prefix)]


def path(kind: BugKind) -> str:
    return f"catalogue/{kind.code}.md"


def contents() -> str:
    """The list of all kinds, by family."""
    lines = [
        "# The catalogue",
        "",
        "Every kind of bug has one code, and each detector reports the same codes. "
        "`holdfast explain CODE` shows a page in the terminal.",
    ]
    for prefix, family in FAMILIES.items():
        lines += [
            "",
            f"## {prefix}xx: {family}",
            "",
            "| code | name | what it is |",
            "|---|---|---|",
        ]
        lines += [row(kind) for kind in KINDS if kind.code.startswith(prefix)]
    return "\n".join(lines) + "\n"


def row(kind: BugKind) -> str:
    summary = kind.summary.replace("|", r"\|")
    return f"| [{kind.code}]({kind.code}.md) | {kind.name} | {summary} |"


def page(kind: BugKind) -> str:
    """One kind, in the same parts each time."""
    parts = [
        f"# {kind.code} {kind.name}",
        kind.summary,
        "## Why it is bad",
        kind.why,
        "## Example",
        fenced(kind.wrong),
        "## Use instead",
        fenced(kind.right),
    ]
    if kind.fine:
        parts += ["## When it is right to ignore", kind.fine]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def fenced(source: str) -> str:
    return f"```python\n{source.strip(chr(10))}\n```"
