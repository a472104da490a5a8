"""The demo's cast: one person a role, and two colleagues who appear in the history. Nobody has a password."""

from dataclasses import dataclass

from queue_core import roles
from reviewboard.models import Person


@dataclass(frozen=True, slots=True)
class Part:
    username: str
    first_name: str
    last_name: str
    role: str


#: Who the sign-in links are for, in the order in which they are printed.
CAST = (
    Part("lead", "Olga", "Brandt", roles.LEAD),
    Part("reviewer", "Ravi", "Menon", roles.REVIEWER),
    Part("viewer", "Vera", "Novak", roles.VIEWER),
    Part("administrator", "Ada", "Okafor", roles.ADMINISTRATOR),
)
COLLEAGUES = (
    Part("night-lead", "Tomas", "Lindqvist", roles.LEAD),
    Part("second-reviewer", "Mei", "Tanaka", roles.REVIEWER),
)


def make_cast() -> dict[str, Person]:
    """Everybody of the demo by username, made or found again."""
    return {part.username: _make(part) for part in (*CAST, *COLLEAGUES)}


def _make(part: Part) -> Person:
    person, is_new = Person.objects.get_or_create(
        username=part.username,
        defaults={
            "first_name": part.first_name,
            "last_name": part.last_name,
            "is_staff": part.role == roles.ADMINISTRATOR,
        },
    )
    if is_new:
        person.set_unusable_password()
        person.save(update_fields=["password"])
    roles.assign(person, part.role)
    return person
