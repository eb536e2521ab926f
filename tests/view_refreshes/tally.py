"""What was compared: refreshes by technique, and what was found wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Finding:
    """A view that is not what it must be, and all that is needed to see it again."""

    kind: str
    view: str
    technique: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.view}, refreshed by {self.technique}\n{self.text}"


@dataclass
class Tally:
    """Counts of compared refreshes. `by_view`: for each view, how often by which technique."""

    compared: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    by_view: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    reasons: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    rounds: int = 0
    lives: int = 0
    refused: int = 0

    def count(self, view: str, technique: str, reason: str = "") -> None:
        self.compared[technique] += 1
        self.by_view[view][technique] += 1
        if technique == "COMPLETE_RECOMPUTE" and reason:
            self.reasons[view] = reason

    def found(self, finding: Finding) -> None:
        self.wrong[finding.technique] += 1
        self.findings.append(finding)

    def table(self) -> str:
        """Technique, refreshes compared, how many of them differed."""
        lines = [f"{'technique':<22} {'compared':>9} {'wrong':>6}  views"]
        for technique in sorted({*self.compared, *self.wrong}):
            views = sum(technique in found for found in self.by_view.values())
            lines.append(f"{technique:<22} {self.compared[technique]:>9} {self.wrong[technique]:>6}  {views}")
        ending = f"{self.refused} operations refused, {len(self.findings)} findings"
        return "\n".join([*lines, f"{self.lives} lives, {self.rounds} rounds, {ending}"])

    def views(self) -> str:
        """For each view the techniques that refreshed it, and why it was computed as a whole the last time."""
        lines = []
        for view in sorted(self.by_view):
            counts = ", ".join(f"{technique} {count}" for technique, count in self.by_view[view].most_common())
            lines.append(f"{view:<20} {counts}" + (f"  (whole: {self.reasons[view]})" if view in self.reasons else ""))
        return "\n".join(lines)
