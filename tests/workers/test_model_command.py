"""manage.py model: the demo's model is told how to behave, and no other is."""

import io

import pytest
from django.core.management import CommandError, call_command

from reviewboard.models import DemoModel
from tests.factories import make_connection

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("model", *arguments, stdout=out)
    return out.getvalue()


def test_all_demo_connections_take_the_condition_and_no_other():
    demo = make_connection(kind="demo")
    make_connection(kind="local")

    run("slow")
    said = run("down")

    assert DemoModel.objects.get().connection == demo
    assert DemoModel.objects.get().condition == "down"
    assert demo.name in said


def test_one_demo_connection_can_be_named():
    make_connection(kind="demo", name="a")
    make_connection(kind="demo", name="b")

    run("wrong", "--connection", "b")

    assert list(DemoModel.objects.values_list("connection__name", "condition")) == [("b", "wrong")]


def test_a_connection_that_is_no_demo_is_left_alone():
    make_connection(kind="local", name="real")

    with pytest.raises(CommandError, match="real"):
        run("down", "--connection", "real")
    with pytest.raises(CommandError, match="no demo connection"):
        run("down")
    assert not DemoModel.objects.exists()


def test_a_condition_that_is_none_is_refused():
    with pytest.raises(CommandError, match="invalid choice"):
        run("sideways")
