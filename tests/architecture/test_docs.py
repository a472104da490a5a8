"""What README and docs name is there: commands and their options, settings, files, addresses, Python names."""

import argparse
import functools
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.urls import Resolver404, resolve

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
}
CODE = ("queue_core", "reviewboard", "deploy", ".ci", "tests")
#: `manage.py name --option value …` up to the end of the code it stands in, over lines that go on.
CALL = re.compile(r"manage\.py ([a-z_]+)((?:[^`\n]|\\\n)*)")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
SETTING = re.compile(r"\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b")
LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")
PLACE = re.compile(r"`((?:deploy|docs|tests|queue_core|reviewboard|static|templates)/[\w./-]*)`")
ADDRESS = re.compile(r"`(/(?!v1/)[\w/-]*/?)`|board\.example(/api/[\w/-]*)|\b(?:GET|POST|PUT|DELETE) (/api/[\w/-]*[\w])")
CASE = re.compile(r"^\| ([A-Z]{3}-\d\d) \|(.*)", re.MULTILINE)
NAME = re.compile(r"`((?:queue_core|reviewboard)\.[\w.]+)(?:\([^`]*)?`")
#: Variables of the environment by example, and words of OpenSSL and of the transparency database that look like ours.
EXAMPLES = re.compile(r"(_API_KEY|_BASE_URL|_SECRET|\ASSL_CERT_FILE)\Z|\A(STATEMENT_CATEGORY|DECISION_VISIBILITY)_")
#: Addresses of model servers, which docs of connections are about, and of consumers.
FOREIGN = ("/v1", "/healthz", "/scores", "/score", "/path", "/hooks")


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> str:
    return PAGES[request.param].read_text(encoding="utf-8")


@functools.cache
def options_of(command: str) -> frozenset[str]:
    parser: argparse.ArgumentParser = load_command_class(get_commands()[command], command).create_parser(
        "manage.py", command
    )
    return frozenset(_options(parser))


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _options(inner)


@functools.cache
def named_in_code() -> frozenset[str]:
    files = (
        path
        for folder in CODE
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and path != Path(__file__)
    )
    found = {name for path in files for name in SETTING.findall(path.read_text(encoding="utf-8", errors="replace"))}
    return frozenset(found)


def test_each_command_that_is_named_is_there_with_its_options(page: str) -> None:
    wrong = []
    for command, rest in CALL.findall(page):
        if command not in get_commands():
            wrong.append(command)
        else:
            wrong += [f"{command} {option}" for option in OPTION.findall(rest) if option not in options_of(command)]

    assert wrong == []


def test_each_setting_that_is_named_is_read_somewhere(page: str) -> None:
    named = {name for name in SETTING.findall(page) if not EXAMPLES.search(name)}

    assert sorted(named - named_in_code()) == []


def test_each_file_that_is_named_or_linked_is_there(page: str, request: pytest.FixtureRequest) -> None:
    beside = PAGES[request.node.callspec.params["page"]].parent
    named = [beside / link for link in LINK.findall(page)] + [ROOT / place for place in PLACE.findall(page)]

    assert [str(path) for path in named if not path.exists()] == []


def test_each_address_that_is_named_leads_somewhere(page: str) -> None:
    named = {address for found in ADDRESS.findall(page) for address in found if address not in ("", "/")}

    assert [address for address in sorted(named) if not _is_ours(address)] == []


def _is_ours(address: str) -> bool:
    if address.startswith(FOREIGN):
        return True
    for tried in (address, f"{address}/", f"{address}/1", f"{address.rstrip('/')}/1/"):
        try:
            resolve(tried)
        except Resolver404:
            continue
        return True
    return False


def test_each_python_name_that_is_named_can_be_imported(page: str) -> None:
    assert [name for name in NAME.findall(page) if not _is_found(name)] == []


def _is_found(name: str) -> bool:
    module, _dot, last = name.rpartition(".")
    try:
        import_module(name)
    except ImportError:
        return hasattr(import_module(module), last)
    return True


def test_each_case_is_named_in_every_test_that_is_said_to_hold_it() -> None:
    wrong, cases = [], CASE.findall(PAGES["docs/cases.md"].read_text("utf-8"))
    for case, row in cases:
        folder = ROOT
        for name in re.findall(r"`([\w/]+\.py)`", row):
            # The folder is told once for those that follow.
            file = ROOT / name if "/" in name else folder / name
            folder = file.parent
            named = file.read_text("utf-8").lower() if file.is_file() else ""
            if not any(one in named for one in (case.lower(), case.lower().replace("-", "_"))):
                wrong.append(f"{case}: {name}")

    assert wrong == []
    assert len(cases) > 90


def test_the_readers_of_this_test_find_what_they_look_for() -> None:
    """So that a change of how docs are written does not make it pass for nothing."""
    readme, operate = PAGES["README.md"].read_text("utf-8"), PAGES["docs/operate.md"].read_text("utf-8")

    assert {"demo", "import_tickets", "export_decisions", "bench"} <= {
        command for command, _rest in CALL.findall(readme)
    }
    assert "--outage" in "".join(rest for _command, rest in CALL.findall(operate))
    assert {"DATABASE_URL", "METRICS_TOKEN"} <= set(SETTING.findall(operate))
    assert "docs/operate.md" in LINK.findall(readme)
    assert "/deliveries/" in {address for found in ADDRESS.findall(readme) for address in found}
    assert "tests/embedding/shop" in PLACE.findall(readme)
    assert "queue_core.contract.receive" in NAME.findall(readme)
