"""What a check found, rule by rule."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "advice", "broken"]


@dataclass(frozen=True)
class Finding:
    """One rule, and how the subject stands to it."""

    rule: str
    """Short name of the rule."""
    level: Level
    """``broken``: not as it must be; ``advice``: allowed, but perhaps not meant so."""
    message: str
    """What was found, with numbers; where something is wrong, also what to do."""

    def __str__(self) -> str:
        return f"{self.level:6}  {self.rule}: {self.message}"


@dataclass(frozen=True)
class CheckReport:
    """All findings about a policy or a scenario."""

    subject: str
    """What was checked."""
    findings: tuple[Finding, ...]
    """In the order of the checks."""

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The rules that are broken."""
        return tuple(finding for finding in self.findings if finding.level == "broken")

    @property
    def advice(self) -> tuple[Finding, ...]:
        """What is allowed, but perhaps not meant so."""
        return tuple(finding for finding in self.findings if finding.level == "advice")

    @property
    def ok(self) -> bool:
        """Whether no rule is broken."""
        return not self.broken

    def __getitem__(self, rule: str) -> Finding:
        """Return the finding of a rule; KeyError if it was not checked."""
        for finding in self.findings:
            if finding.rule == rule:
                return finding
        raise KeyError(rule)

    def __str__(self) -> str:
        return "\n".join([self.subject, *(f"  {finding}" for finding in self.findings)])

    def checked(self) -> "CheckReport":
        """Return the report itself.

        Raises
        ------
        CheckFailed
            If a rule is broken.
        """
        if not self.ok:
            raise CheckFailed(self)
        return self


class CheckFailed(AssertionError):
    """A rule is broken; the message is the whole report.

    Parameters
    ----------
    report : CheckReport
        What was found.
    """

    def __init__(self, report: CheckReport) -> None:
        names = ", ".join(finding.rule for finding in report.broken)
        super().__init__(f"broken: {names}\n{report}")
        self.report = report

    def __reduce__(self) -> tuple[type["CheckFailed"], tuple[CheckReport]]:
        """Return what a pickle needs."""
        return CheckFailed, (self.report,)


class Findings:
    """Collects findings in order."""

    def __init__(self) -> None:
        self._found: list[Finding] = []

    def add(self, rule: str, wrong: str | None, fine: str, level: Level = "broken") -> None:
        """Note a rule: what is wrong with it, or, if nothing is, that it is fine."""
        if wrong is None:
            self._found.append(Finding(rule, "ok", fine))
        else:
            self._found.append(Finding(rule, level, wrong))

    def report(self, subject: str) -> CheckReport:
        """Return all that was noted."""
        return CheckReport(subject, tuple(self._found))
