import pytest


@pytest.fixture(autouse=True)
def silent_wakeups(monkeypatch):
    """No broker: what workers would be woken for, the tests do themselves."""
    sent = []
    monkeypatch.setattr("queue_core.wakeups._send", lambda task, *args: sent.append((task, *args)))
    return sent
