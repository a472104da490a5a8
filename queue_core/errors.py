"""Mistakes of callers. A lost race is never one of these: it is an outcome that a verb returns."""


class CallerError(ValueError):
    """A call that is wrong whatever the database holds. `field` names what is wrong, in the words of the API."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidJob(CallerError):
    """Intake with an empty id or revision, a clock that is none, or a deadline that is not after now."""


class RevisionConflict(CallerError):
    """Intake or supersede for a revision while another one is current. Nothing was changed."""

    def __init__(self, message: str, *, current: str) -> None:
        super().__init__(message, field="revision")
        self.current = current


class InvalidClaim(CallerError):
    """A claim with a clock that is none, or a lease or budget below 1."""


class InvalidCompletion(CallerError):
    """A completion, renewal or release with a clock that is none."""


class UnknownResult(CallerError):
    """A completion whose token holds, with a result that is none of APPROVED, REJECTED, MANUAL."""


class InvalidRequest(CallerError):
    """A person's verb with an argument that is out of its limits, for example a new deadline in the past."""


class NotPermitted(Exception):
    """The person may not do this here. Views answer it as they answer what does not exist."""


class ConfigurationFault(Exception):
    """A connection, policy or lane is set up so that it cannot work. The sentence says what to change."""


class BenchFault(Exception):
    """The bench cannot go on: what it needs is not there, or one of its clients failed. The sentence says which."""
