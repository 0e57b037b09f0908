"""One rank's run from start to summary: session, plan, build, fit, summary."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from unisono.data import DataSets, open_data_sets
from unisono.data.base import first_images
from unisono.distributed.collectives import broadcast_object, gather_objects
from unisono.distributed.session import Session, open_session
from unisono.errors import UserError
from unisono.job.control import StopFlag
from unisono.job.plan import Job, plan
from unisono.job.world import World
from unisono.metrics.clock import percentile
from unisono.metrics.writer import manifest, python_command
from unisono.platforms.base import Platform
from unisono.recipe.schema import Recipe
from unisono.train.build import Surroundings, build_trainer
from unisono.train.checkpoint import read_on_all_ranks
from unisono.train.digest import digest_of
from unisono.train.ground import ground_of, read_grounds, warning_on_resume, with_earlier
from unisono.train.pulse import Pulse
from unisono.train.report import Reporter, Silent
from unisono.train.run_folder import RunFolder, make_run_dir, newest_run_dir, with_resume
from unisono.train.snapshot import restore, snapshot
from unisono.train.trainer import Trainer

log = logging.getLogger(__name__)

_DRY_RUN_BATCHES = 4
_TRAINING_PHASES = ("data", "forward", "backward", "reduce", "update")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRequest:
    """What one rank was asked to do; the same on every rank but for `world`."""

    recipe: Recipe
    data_path: Path | None
    platform: Platform
    world: World
    threads: int
    runs_dir: Path
    run_dir: Path | None = None
    """Chosen by the launcher; None lets rank 0 make one in `runs_dir`."""
    resume: str | None = None
    """None, "auto", or the path of a checkpoint."""
    allow_changed: tuple[str, ...] = ()
    collective_timeout_s: float = 420.0
    record_every: int = 10
    trace: bool = False
    attempt: int = 0
    started: float = field(default_factory=time.time)
    """When the command was started, in seconds since 1970; `total_s` counts from there, restarts included."""
    stop_after: int | None = None
    """Stop, as a signal would, after so many steps."""
    dry_run: bool = False
    """Count only a few batches of the validation set."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """What the command line set, for the manifest."""


def run(request: RunRequest, reporter: Reporter, pulse: Pulse, stop: StopFlag) -> dict[str, Any]:
    """Carry out a run and return its summary (whole on rank 0). Collective.

    Raises:
        UserError: any coded error of the plan, data, checkpoint or training.
    """
    if request.threads:
        torch.set_num_threads(request.threads)
    device = request.platform.activate(request.world.local_rank, request.world.local_world_size)
    sets = open_data_sets(request.recipe, request.data_path)
    if request.dry_run:
        few = _DRY_RUN_BATCHES * request.recipe.evaluate.per_device_batch_size
        sets = replace(sets, val=first_images(sets.val, few))
    job = decide(request, sets)
    with (
        open_session(request.world, device, request.platform.backend, request.collective_timeout_s) as session,
        ExitStack() as closing,
    ):
        folder = agree_on_folder(request, session)
        around = Surroundings(
            platform=request.platform,
            folder=folder,
            pulse=pulse,
            stop=stop,
            reporter=reporter if session.is_first else Silent(),
            record_every=request.record_every,
            trace=request.trace,
            stop_after=request.stop_after,
        )
        trainer = build_trainer(job, session, sets, around)
        closing.callback(trainer.batches.close)
        if trainer.writer is not None and trainer.saver is not None:
            closing.callback(trainer.writer.close)
            closing.callback(trainer.saver.close)
        trainer.clock.on_warm = pulse.restart_clock
        prepare(trainer, request, folder)
        for note in sets.notes:
            trainer.reporter.said(f"note: {note}")
        trainer.fit()
        return conclude(trainer, folder, sets, time.time() - request.started)


def decide(request: RunRequest, sets: DataSets) -> Job:
    """The plan for this machine, world and data."""
    platform = request.platform
    return plan(
        request.recipe,
        world_size=request.world.world_size,
        platform=platform.name,
        backend=platform.backend,
        simulated=platform.simulated,
        capabilities=platform.capabilities,
        threads=request.threads or torch.get_num_threads(),
        train_images=len(sets.train),
        val_images=len(sets.val),
    )


def agree_on_folder(request: RunRequest, session: Session) -> RunFolder:
    """Rank 0 chooses the folder and the checkpoint to go on from; all ranks learn it, or its error. Collective."""
    answer: RunFolder | UserError | None = None
    if session.is_first:
        try:
            answer = _choose_folder(request)
        except UserError as error:
            answer = error
    agreed = broadcast_object(answer, session.device)
    if isinstance(agreed, UserError):
        raise agreed
    assert isinstance(agreed, RunFolder)
    return agreed


def _choose_folder(request: RunRequest) -> RunFolder:
    named = Path(request.resume) if request.resume not in (None, "auto") else None
    if request.run_dir is not None:
        path = request.run_dir
    elif request.resume == "auto":
        path = newest_run_dir(request.runs_dir, request.recipe.name)
    else:
        path = make_run_dir(request.runs_dir, request.recipe.name)
    folder = RunFolder(path)
    folder.checkpoints.mkdir(parents=True, exist_ok=True)
    folder.logs.mkdir(exist_ok=True)
    return with_resume(folder, named)


def prepare(trainer: Trainer, request: RunRequest, folder: RunFolder) -> None:
    """Everything between build and the first step: resume, space check, manifest, the plan told. Collective."""
    if folder.resume_from is not None:
        restore(trainer, read_on_all_ranks(folder.resume_from, trainer.session), request.allow_changed)
    payload = snapshot(trainer)
    if trainer.saver is not None and trainer.writer is not None:
        trainer.saver.check_space(payload)
        extra = {
            "platform": trainer.job.platform,
            "simulated": trainer.job.simulated,
            "backend": trainer.job.backend,
            "world_size": trainer.job.world_size,
            "threads": trainer.job.threads,
            "reduction": trainer.job.recipe.reduction.name,
            "attempt": request.attempt,
            "resumed_from": str(folder.resume_from) if folder.resume_from else None,
            "overrides": request.provenance,
            "plan": trainer.job.lines(),
        }
        made_with = manifest(python_command(), trainer.platform.describe(), extra)
        earlier = read_grounds(folder.resume_from.parents[1]) if folder.resume_from is not None else []
        warning = warning_on_resume(earlier, ground_of(made_with))
        if warning is not None:
            trainer.reporter.said(f"warning: {warning}")
        trainer.writer.write_json("manifest.json", with_earlier(made_with, earlier))
        trainer.writer.write_json("recipe.json", request.recipe.model_dump(mode="json"))
    trainer.reporter.planned(trainer.job.lines())
    if folder.resume_from is not None:
        trainer.reporter.said(
            f"resumed from {folder.resume_from.name}: step {trainer.state.step} of {trainer.job.total_steps}"
        )


def conclude(trainer: Trainer, folder: RunFolder, sets: DataSets, total_s: float) -> dict[str, Any]:
    """Finish the last write, then sum the run up. Collective."""
    trainer.clock.lap()
    bad_images = sum(gather_objects(trainer.batches.bad_image_count()))
    phases = gather_objects({phase: trainer.pulse.phase_s[phase] for phase in _TRAINING_PHASES})
    # A run that was whole already has written nothing this time.
    untouched = snapshot(trainer) if trainer.state.step == folder.resumed_at else None
    if trainer.saver is None or trainer.writer is None:
        return {"stopped": trainer.stopped}
    trainer.pulse.at("save", trainer.state.position)
    trainer.saver.wait()
    if untouched is not None and not trainer.saver.last_digest:
        trainer.saver.last_digest = digest_of(untouched)
    summary = summarize(trainer, folder, total_s, bad_images) | {"phase_s_by_rank": phases, "sample": sets.is_sample}
    try:
        trainer.writer.write_json("summary.json", summary)
        trainer.pulse.at("end", trainer.state.position)
    finally:
        # A missing checkpoint weighs more than a missing summary.
        trainer.reporter.finished(summary)
        trainer.saver.refuse_unwritten(trainer.state.step)
    return summary


def summarize(trainer: Trainer, folder: RunFolder, total_s: float, bad_images: int) -> dict[str, Any]:
    """The run in figures; units are in the names. Times leave the first steps, evaluation and saving out."""
    job, state, clock = trainer.job, trainer.state, trainer.clock
    step_s = clock.training_s / clock.timed_steps if clock.timed_steps else None
    speed = job.recipe.global_batch_size / step_s if step_s else None
    last = state.evaluations[-1] if state.evaluations else {}
    saver = trainer.saver
    assert saver is not None
    return {
        "recipe": job.recipe.name,
        "run_dir": str(folder.path),
        "stopped": trainer.stopped,
        "simulated": job.simulated,
        "platform": job.platform,
        "backend": job.backend,
        "world_size": job.world_size,
        "replicas": job.recipe.replicas,
        "global_batch_size": job.recipe.global_batch_size,
        "threads": job.threads,
        "steps": state.step,
        "skipped_steps": state.skipped_steps,
        "epochs": state.step / job.steps_per_epoch,
        "images_seen": state.step * job.recipe.global_batch_size,
        "train_loss": state.loss_history[-1][1] if state.loss_history else None,
        "top1_accuracy": last.get("top1_accuracy"),
        "top5_accuracy": last.get("top5_accuracy"),
        "evaluation": last,
        "best_top1_accuracy": state.best_top1_accuracy if state.evaluations else None,
        "best_step": state.best_step,
        "images_per_second": speed,
        "images_per_second_per_device": speed / job.world_size if speed else None,
        "step_time_ms": step_s * 1e3 if step_s else None,
        "step_time_ms_p50": _ms(percentile(clock.step_times_s, 0.5)),
        "step_time_ms_p90": _ms(percentile(clock.step_times_s, 0.9)),
        "timed_steps": clock.timed_steps,
        "first_step_s": clock.first_step_s,
        "training_s": clock.training_s,
        "evaluate_s": clock.phase_s.get("evaluate", 0.0),
        "save_blocked_s": clock.phase_s.get("save", 0.0),
        "save_write_s": saver.write_s,
        "failed_checkpoint_writes": saver.failed_writes,
        "total_s": total_s,
        "bad_images": bad_images,
        "restarts": trainer.pulse.outage.restarts,
        "seconds_lost": trainer.pulse.outage.over().seconds_lost,
        "digest": saver.last_digest,
        "peak_memory_bytes": trainer.platform.describe().get("peak_memory_bytes"),
        "learning_rate": {"peak": job.peak_learning_rate, "reason": job.learning_rate_reason},
        "last_evaluation": asdict(trainer.last_evaluation) if trainer.last_evaluation else None,
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
