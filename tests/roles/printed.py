"""The matrix as a page for people: docs/rights.md."""

from queue_core import roles
from tests.roles.matrix import ALL, MATRIX, OPEN, OWN, SIGNED_IN, SOMEWHERE, Entry
from tests.roles.scene_roles import ROLES
from tests.roles.verbs import VERBS

HEAD = """# Rights: every address and verb against every role

Printed from the tables that `tests/roles/test_matrix.py` tries. A role is held everywhere or on one lane; on one lane
it opens nothing of another. **yes**: on the lane of the row; **any**: from any one lane on, and only those lanes are
shown; **own**: like any, and only one's own rows. The rest does not exist for the role: 404, as what is not there.
"""


def as_markdown() -> str:
    head = f"| Address | {' | '.join(ROLES)} |\n|---|{'---|' * len(ROLES)}"
    addresses = [f"| `{name}` | {' | '.join(_cell(entry, role) for role in ROLES)} |" for name, entry in MATRIX.items()]
    verbs = [f"| `{name}` | {' | '.join(_verb_cell(name, role) for role in ROLES)} |" for name in sorted(VERBS)]
    verb_head = head.replace("Address", "Verb")
    return "\n".join([HEAD, head, *addresses, "", verb_head, *verbs, ""])


def _cell(entry: Entry, role: str) -> str:
    if entry.rule in (OPEN, SIGNED_IN):
        return "yes"
    rights = set(roles.RIGHTS[role])
    has = set(entry.rights) <= rights if entry.rule == ALL else bool(rights & set(entry.rights))
    return {SOMEWHERE: "any", OWN: "own"}.get(entry.rule, "yes") if has else "–"


def _verb_cell(name: str, role: str) -> str:
    return "yes" if set(VERBS[name][0]) <= set(roles.RIGHTS[role]) else "–"
