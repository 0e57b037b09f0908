"""How a run looks: a progress bar on a terminal, plain lines elsewhere, one JSON document for programs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unisono.cli import render

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from unisono.train.evaluate import Evaluation
    from unisono.train.report import Progress


class Lines:
    """One line an event, for logs and pipes. With `as_json` the lines go to standard error, the summary to standard output."""

    def __init__(self, *, as_json: bool) -> None:
        self._json = as_json
        self._say = render.note if as_json else render.line

    def planned(self, lines: Sequence[str]) -> None:
        """The plan, line by line."""
        for text in lines:
            self._say(text)

    def progressed(self, progress: Progress) -> None:
        """Step, loss, rate, speed, time left."""
        self._say(_progress_text(progress))

    def evaluated(self, evaluation: Evaluation, step: int, best: bool) -> None:
        """Counts and shares."""
        self._say(evaluation_text(evaluation, step, best))

    def said(self, text: str) -> None:
        """As it is."""
        self._say(text)

    def finished(self, summary: dict[str, Any]) -> None:
        """The summary as lines, or as JSON."""
        if self._json:
            render.as_json(summary)
        else:
            for text in summary_lines(summary):
                self._say(text)


class Terminal:
    """A progress bar with loss, top-1, images/s and time left; evaluations and remarks scroll above it."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def planned(self, lines: Sequence[str]) -> None:
        """The plan, then the bar."""
        for text in lines:
            render.line(text)

    def progressed(self, progress: Progress) -> None:
        """Move the bar."""
        if self._bar is None:
            self._start(progress.total_steps)
        assert self._bar is not None
        assert self._task is not None
        self._bar.update(
            self._task,
            completed=progress.step,
            loss=f"{progress.loss:.4f}",
            top1="-" if progress.top1_accuracy is None else f"{progress.top1_accuracy:.2%}",
            speed="-" if progress.images_per_second is None else f"{progress.images_per_second:,.0f}",
        )

    def evaluated(self, evaluation: Evaluation, step: int, best: bool) -> None:
        """A line above the bar."""
        self.said(evaluation_text(evaluation, step, best))

    def said(self, text: str) -> None:
        """A line above the bar."""
        if self._bar is None:
            render.line(text)
        else:
            self._bar.console.print(text, markup=False, highlight=False)

    def finished(self, summary: dict[str, Any]) -> None:
        """Close the bar and sum up."""
        if self._bar is not None:
            self._bar.stop()
        for text in summary_lines(summary):
            render.line(text)

    def _start(self, total: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("step"),
            MofNCompleteColumn(),
            BarColumn(bar_width=None),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("top-1 {task.fields[top1]}"),
            TextColumn("{task.fields[speed]} images/s"),
            TimeRemainingColumn(),
        )
        self._task = self._bar.add_task("", total=total, loss="-", top1="-", speed="-")
        self._bar.start()


def choose_reporter(*, as_json: bool) -> Lines | Terminal:
    """The bar where a person watches, lines elsewhere."""
    return Lines(as_json=as_json) if as_json or not sys.stdout.isatty() else Terminal()


class ToReporter(logging.Handler):
    """Warnings of the library become lines of the run."""

    def __init__(self, reporter: Lines | Terminal) -> None:
        super().__init__(logging.WARNING)
        self._reporter = reporter

    def emit(self, record: logging.LogRecord) -> None:
        """Say the warning."""
        self._reporter.said(f"{record.levelname.lower()}: {record.getMessage()}")


def _progress_text(progress: Progress) -> str:
    parts = [
        f"step {progress.step}/{progress.total_steps}",
        f"epoch {progress.epoch:.2f}",
        f"loss {progress.loss:.4f}",
        f"lr {progress.learning_rate:.4g}",
    ]
    if progress.images_per_second is not None:
        parts.append(f"{progress.images_per_second:,.0f} images/s")
    if progress.eta_s is not None:
        parts.append(f"{_duration(progress.eta_s)} left")
    return "  ".join(parts)


def evaluation_text(evaluation: Evaluation, step: int, best: bool) -> str:
    """ "evaluated at step 390: top-1 81.20 % (8120 of 10000), top-5 ..., loss ..., best so far" """
    return (
        f"evaluated at step {step}: top-1 {evaluation.top1_accuracy:.2%} ({evaluation.correct_top1} of {evaluation.images}), "
        f"top-5 {evaluation.top5_accuracy:.2%}, loss {evaluation.loss:.4f}{', best so far' if best else ''}"
    )


def summary_lines(summary: dict[str, Any]) -> list[str]:
    """The end of a run in a few lines."""
    verb = "stopped" if summary["stopped"] else "finished"
    devices = f"{summary['world_size']}{' simulated' if summary['simulated'] else ''} {summary['platform']} device"
    lines = [
        f"{verb} {summary['recipe']} at step {summary['steps']} (epoch {summary['epochs']:.2f}) "
        f"on {devices}{'s' if summary['world_size'] > 1 else ''}, {_duration(summary['total_s'])} in all",
    ]
    if summary["top1_accuracy"] is not None:
        best = f"best {summary['best_top1_accuracy']:.2%} at step {summary['best_step']}"
        lines.append(f"top-1 accuracy {summary['top1_accuracy']:.2%}, {best}")
    if summary["images_per_second"]:
        lines.append(
            f"{summary['images_per_second']:,.0f} images/s ({summary['images_per_second_per_device']:,.0f} a device), "
            f"step {summary['step_time_ms_p50']:.1f} ms (p90 {summary['step_time_ms_p90']:.1f})"
        )
        lines.append(
            f"first step after {summary['first_step_s']:.1f} s, evaluation {summary['evaluate_s']:.1f} s, "
            f"waiting for checkpoints {summary['save_blocked_s']:.1f} s"
        )
    if summary["restarts"]:
        times = "once" if summary["restarts"] == 1 else f"{summary['restarts']} times"
        lines.append(f"restarted {times}, {summary['seconds_lost']:.1f} s lost")
    if summary["skipped_steps"]:
        lines.append(f"{summary['skipped_steps']} updates skipped")
    if summary["bad_images"]:
        lines.append(f"{summary['bad_images']} unreadable images were replaced; `unisono data check` lists them")
    lines.append(f"digest {summary['digest'][:16]} of the whole training state, equal on any number of devices")
    lines.append(f"kept in {summary['run_dir']}")
    return lines


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
