"""What a gate says in short, as it is told of where nobody measures it: on the board, and in an alert."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from queue_core.gate_lines import RANK, GateLine, GateVerdict


@dataclass(frozen=True, slots=True)
class GateTold:
    """The verdict, and the lines that keep it from being good, as `GateLine.frozen` has them, the worst first."""

    verdict: GateVerdict
    lines: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, lines: Sequence[GateLine]) -> Self:
        """No line at all is inconclusive, as for the gate itself."""
        worst = sorted(lines, key=lambda line: -RANK[line.verdict])
        verdict = worst[0].verdict if worst else GateVerdict.INCONCLUSIVE
        return cls(verdict, [line.frozen() for line in worst if line.verdict != GateVerdict.GOOD])

    @classmethod
    def thawed(cls, kept: Mapping[str, Any]) -> Self:
        return cls(GateVerdict(kept["verdict"]), kept["lines"])

    def frozen(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"verdict": self.verdict.value, "lines": list(self.lines)}
