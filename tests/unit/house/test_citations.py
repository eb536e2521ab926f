"""What code, tests and pages refer to is in the repository: rules of docs/semantics, and the tests that show them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.paths import ROOT

SEMANTICS = ROOT / "docs" / "semantics"
OUTSIDE = re.compile(
    r"dlt-semantics|\bspec/|\b[Ss]pec (?:section )?\d|\b(?:engine|design|style|autoloader)\.md|(?<![(/\"])\bcli\.md|\bstyle rule"
    r"|\s\(\d{1,2}\.\d{1,2}(?:[,:] (?:[A-Z]{2}-|[a-z])|(?:, \d{1,2}\.\d{1,2})*\))|\bas in \d{1,2}\.\d|\([A-Z]\d{2}\)"
)
"""Documents that are not in the repository, and bare numbers of sections, as `(6.1).`, and of cases. `cli.md` is in docs/reference."""
RULE = re.compile(r"^(?:\| |\*\*)([A-Z]{2}-\d+)\b", re.MULTILINE)


def stated() -> list[str]:
    """The numbers of all rules, in the order of the pages."""
    return [rule for page in sorted(SEMANTICS.glob("*.md")) for rule in RULE.findall(page.read_text(encoding="utf-8"))]


def tracked(*folders: str) -> list[Path]:
    """The text files that git knows below `folders` (`*`: everywhere); of a copy without git, those of the main folders."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        paths = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path for folder in ("src", "tests", "docs", "benchmarks", "scripts") for path in (ROOT / folder).rglob("*")]
    return [path for path in paths if path.suffix in {".py", ".md", ".toml", ".yml", ".yaml", ".sql"} and path.is_file()]


def test_every_rule_has_one_number_and_the_index_names_its_page() -> None:
    rules = stated()
    index = (SEMANTICS / "README.md").read_text(encoding="utf-8")
    pages = {page.name: RULE.findall(page.read_text(encoding="utf-8")) for page in SEMANTICS.glob("*.md") if page.name != "README.md"}
    lines = {name: {rule.split("-")[0] for rule in found} for name, found in pages.items()}
    assert sorted({rule for rule in rules if rules.count(rule) > 1}) == []
    assert [f"{name}: {', '.join(prefixes)}" for name, prefixes in sorted(lines.items()) if len(prefixes) != 1] == []
    assert [name for name, (prefix,) in sorted(lines.items()) if f"]({name}) | {prefix} |" not in index] == []


def test_no_text_cites_a_document_that_is_not_in_the_repository() -> None:
    here = Path(__file__)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in tracked("*")
        if path != here
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (match := OUTSIDE.search(line))
    ]
    assert found == []


def test_every_rule_that_is_cited_is_stated() -> None:
    rules = set(stated())
    cited = re.compile(rf"\b(?:{'|'.join(sorted({rule.split('-')[0] for rule in rules}))})-\d+\b")
    unknown = {
        f"{path.relative_to(ROOT)}: {rule}"
        for path in tracked("src", "tests", "docs", "benchmarks", "scripts")
        for rule in cited.findall(path.read_text(encoding="utf-8"))
        if rule not in rules
    }
    assert sorted(unknown) == []


def test_every_test_that_a_rule_names_exists() -> None:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    names = {path.name for path in files}
    functions = {name for path in files for name in re.findall(r"^\s*def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)}

    def exists(name: str, ending: str) -> bool:
        """`test_x.py`: a file. `test_x…`: functions whose names have that beginning, with or without further case ids before it."""
        if ending == ".py":
            return f"{name}.py" in names
        return name in functions or (ending == "…" and any(name.removeprefix("test") in function for function in functions))

    missing: list[str] = []
    for page in sorted(SEMANTICS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        missing += [f"{page.name}: {path}" for path in re.findall(r"`(tests/[\w/]+(?:\.\w+)?)", text) if not (ROOT / path).exists()]
        missing += [f"{page.name}: {name}{end}" for name, end in re.findall(r"\b(test_\w+)(\.py|…)?", text) if not exists(name, end)]
    assert missing == []


def test_every_link_to_a_file_leads_to_one() -> None:
    missing = []
    for page in tracked("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        links = re.findall(r"\]\((?!https?:|mailto:|#)([^)\s#]+)", text)
        missing += [f"{page.relative_to(ROOT)}: {link}" for link in links if not (page.parent / link).exists()]
    assert missing == []
