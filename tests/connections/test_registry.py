from importlib.metadata import EntryPoint, EntryPoints

import pytest
from pytest_django.fixtures import Settings

from queue_core.connections import build, kinds, registry
from queue_core.connections.base import Connection
from queue_core.connections.local import LocalConnection
from queue_core.errors import ConfigurationFault
from queue_core.models import ModelConnection
from tests.connections.adapters import Scripted


def scripted(_row: ModelConnection) -> Connection:
    return Scripted()


def no_adapter(_row: ModelConnection) -> object:
    return object()


def fails(_row: ModelConnection) -> object:
    raise RuntimeError("no such region")


HERE = __name__


def offer(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    offered = EntryPoints(EntryPoint(name, value, registry.GROUP) for name, value in points)
    monkeypatch.setattr(registry, "entry_points", offered.select)


def test_build_of_a_known_kind_gives_its_adapter_with_the_rows_marks() -> None:
    adapter = build(ModelConnection(kind="local", allow_restricted=True))

    assert isinstance(adapter, LocalConnection)
    assert adapter.allow_restricted


def test_build_of_an_unknown_kind_names_it_and_the_known_ones() -> None:
    with pytest.raises(ConfigurationFault, match=r"“parrot”.*local"):
        build(ModelConnection(kind="parrot"))


def test_build_finds_a_kind_of_the_projects_setting(settings: Settings) -> None:
    settings.QUEUE_CORE_CONNECTIONS = {"scripted": f"{HERE}.scripted"}

    assert isinstance(build(ModelConnection(kind="scripted")), Scripted)
    assert "scripted" in kinds()


def test_build_finds_a_kind_of_an_installed_package(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("scripted", f"{HERE}:scripted"))

    assert isinstance(build(ModelConnection(kind="scripted")), Scripted)
    assert "scripted" in kinds()


def test_a_package_cannot_replace_a_built_in_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("local", f"{HERE}:scripted"))

    assert isinstance(build(ModelConnection(kind="local")), LocalConnection)


def test_a_kind_that_two_packages_offer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("scripted", f"{HERE}:scripted"), ("scripted", f"{HERE}:fails"))

    with pytest.raises(ConfigurationFault, match="Several packages"):
        build(ModelConnection(kind="scripted"))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("no_such_module.build", "no_such_module"),
        (f"{HERE}.no_such_name", "no_such_name"),
        (f"{HERE}.fails", "no such region"),
        (f"{HERE}.no_adapter", "does not offer what a connection must"),
    ],
)
def test_an_adapter_that_cannot_be_built_is_a_configuration_fault(settings: Settings, path: str, says: str) -> None:
    settings.QUEUE_CORE_CONNECTIONS = {"broken": path}

    with pytest.raises(ConfigurationFault, match=says):
        build(ModelConnection(kind="broken"))
