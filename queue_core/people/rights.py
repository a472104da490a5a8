"""Who may. The verbs ask here themselves, so that no view, admin or shell can forget to."""

from queue_core.rights import (
    lanes_where_may,
    may,
    may_somewhere,
    on_lanes_of,
    people_who_may,
    require,
    require_somewhere,
)

__all__ = ["lanes_where_may", "may", "may_somewhere", "on_lanes_of", "people_who_may", "require", "require_somewhere"]
