"""Watches a run through the engine's events and keeps, for each request, what the figures need."""

from __future__ import annotations

from dataclasses import dataclass

from dws.model import events as ev


@dataclass(slots=True)
class Course:
    """What became of one request: instants of domain time, 0 while they have not come.

    `first_promise` is the latest start first told, `promise` the one in force at the start;
    `passed_others` is True when it started while someone who came before it was waiting.
    """

    submitted: int
    size: int
    first_promise: int = 0
    promise: int = 0
    moved_later: int = 0
    started: int = 0
    ended: int = 0
    passed_others: bool = False


class Recorder:
    """Takes the engine's measurements: implements the `Meters` port."""

    def __init__(self) -> None:
        self.courses: dict[int, Course] = {}
        self.planning_s: list[float] = []
        self._waiting: dict[int, None] = {}

    def planned(self, seconds: float) -> None:
        """A planning pass took this long."""
        self.planning_s.append(seconds)

    def happened(self, events: list[ev.Event]) -> None:
        """Follow these events."""
        for event in events:
            if event.subject_kind is ev.SubjectKind.REQUEST:
                self._follow(event)

    def _follow(self, event: ev.Event) -> None:
        match event.body:
            case ev.Submitted(request=request):
                size = request.demand.alternatives[0].count
                self.courses[event.subject] = Course(submitted=event.at, size=size)
                self._waiting[event.subject] = None
            case ev.Booked(start=start):
                course = self.courses[event.subject]
                course.first_promise = course.first_promise or start
                course.promise = start
            case ev.Moved(start=start):
                course = self.courses[event.subject]
                course.promise = start
                course.moved_later += 1
            case ev.Started():
                self._started(event)
            case ev.Ended():
                self.courses[event.subject].ended = event.at

    def _started(self, event: ev.Event) -> None:
        course = self.courses[event.subject]
        course.started = event.at
        self._waiting.pop(event.subject, None)
        oldest = next(iter(self._waiting), None)
        course.passed_others = oldest is not None and oldest < event.subject
