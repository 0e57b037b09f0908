"""The live objects of a run and the loop over steps: train, record, evaluate, save, stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unisono.data import Batches
from unisono.distributed.buffers import ReplicaBuffers
from unisono.distributed.collectives import gather_replicas
from unisono.distributed.reduction import Reduction
from unisono.distributed.session import Session
from unisono.errors import ExitCode, UserError
from unisono.job.control import StopFlag
from unisono.job.learning_rate import learning_rate
from unisono.job.plan import Job
from unisono.metrics.clock import TrainingClock
from unisono.metrics.writer import RunWriter
from unisono.platforms.base import Platform
from unisono.train.checkpoint import CheckpointWriter
from unisono.train.digest import digest_of
from unisono.train.ema import Ema
from unisono.train.evaluate import Evaluation, evaluate
from unisono.train.precision import LossScaler, Precision
from unisono.train.pulse import Pulse
from unisono.train.report import Progress, Reporter
from unisono.train.snapshot import snapshot
from unisono.train.state import TrainState
from unisono.train.step import StepResult, train_step

# On accelerators the host looks at votes this often, since each look empties the device's queue.
_LOOK_EVERY_STEPS = 10


@dataclass(slots=True)
class Trainer:
    """Everything alive in one rank of a run. Built by `train.build`."""

    job: Job
    session: Session
    platform: Platform
    model: nn.Module
    forward: Callable[[Tensor], Tensor]
    """The model as it is called: through DDP or torch.compile where the recipe says so."""
    parameters: list[nn.Parameter]
    block: range
    """The replicas of this rank."""
    num_classes: int
    class_names: tuple[str, ...]
    reduction: Reduction
    buffers: ReplicaBuffers
    optimizer: torch.optim.Optimizer
    precision: Precision
    scaler: LossScaler
    loss: Callable[[Tensor, Tensor], Tensor]
    ema: Ema | None
    batches: Batches
    state: TrainState
    pulse: Pulse
    stop: StopFlag
    clock: TrainingClock
    reporter: Reporter
    record_every: int
    writer: RunWriter | None
    """On rank 0 alone."""
    saver: CheckpointWriter | None
    """On rank 0 alone."""
    stop_after: int | None = None
    """Stop, as a signal would, after so many steps."""
    trace: bool = False
    """Record the digest of the weights at every step."""
    last_evaluation: Evaluation | None = None
    stopped: bool = False

    def fit(self) -> None:
        """Train from where the state stands to the last step, or until a signal. Collective."""
        if self._owes_evaluation() and not self.evaluate():
            self.stopped = True
        while self.state.step < self.job.total_steps and not self.stopped:
            first = self.state.position
            self.pulse.at("data", first)
            for batches in self.batches.train_steps(first, first + self.job.total_steps - self.state.step):
                result = train_step(self, batches)
                self.account(result)
                self.stopped = self.after_step(result)
                if self.stopped:
                    break
                self.pulse.at("data", self.state.position)
        if self.stopped:
            self.save(best=False)

    def account(self, result: StepResult) -> None:
        """Advance the state by one batch, or by one skipped one.

        Raises:
            UserError: T301 too many steps in a row that were not finite.
        """
        state = self.state
        self.clock.step_done()
        if not result.skipped:
            state.step += 1
            state.not_finite_in_a_row = 0
            return
        state.skipped_steps += 1
        state.not_finite_in_a_row += 1
        limit = self.job.recipe.non_finite_limit
        cause = "loss" if result.not_finite else "gradient"
        self.reporter.said(
            f"step {state.step + 1}: {cause} not finite, update skipped ({state.not_finite_in_a_row} in a row of {limit} allowed)"
        )
        if state.not_finite_in_a_row >= limit:
            raise UserError(
                "T301",
                f"{cause} not finite for {limit} steps in a row at step {state.step + 1}",
                f"learning rate {self.learning_rate():g}, {self.precision.name}; weights were not moved, the last checkpoint is untouched",
                "lower optimizer.learning_rate, lengthen schedule.lr_warmup, set optimizer.max_grad_norm, or train in fp32",
                exit_code=ExitCode.CRASHED,
            )

    def after_step(self, result: StepResult) -> bool:
        """What is due after a step: record, evaluate, save. True when the run is to stop here."""
        state, job = self.state, self.job
        if result.skipped:
            return result.stop
        last = state.step == job.total_steps
        if self.trace or last or state.step % self.record_every == 0:
            self.record(result.losses)
        best = False
        if self._is_due(job.evaluate_every_steps):
            before = state.best_step
            if not self.evaluate():
                return True
            best = state.best_step != before
        if last or best or self._is_due(job.checkpoint_every_steps):
            self.save(best=best)
        return (result.stop or state.step == self.stop_after) and not last

    def record(self, losses: Tensor) -> None:
        """Gather this step's losses, the same numbers on any number of ranks, and tell. Collective."""
        loss = float(gather_replicas(losses.float(), self.job.recipe.replicas).cpu().double().mean())
        self.state.loss_history.append([float(self.state.step), loss])
        a_step = self.clock.lap()
        digest = (
            {"weights_digest": digest_of([p.detach() for p in self.parameters])}
            if self.trace and self.session.is_first
            else {}
        )
        speed = None if a_step is None else self.job.recipe.global_batch_size / a_step
        progress = Progress(
            step=self.state.step,
            total_steps=self.job.total_steps,
            epoch=self.state.step / self.job.steps_per_epoch,
            loss=loss,
            learning_rate=self.learning_rate(self.state.step - 1),
            images_per_second=speed,
            top1_accuracy=self.state.evaluations[-1]["top1_accuracy"] if self.state.evaluations else None,
            eta_s=None if a_step is None else a_step * (self.job.total_steps - self.state.step),
        )
        self.reporter.progressed(progress)
        if self.writer is not None:
            self.writer.record(
                "train",
                self.state.step,
                {
                    "epoch": progress.epoch,
                    "loss": loss,
                    "learning_rate": progress.learning_rate,
                    "images_per_second": speed,
                    "step_time_ms": None if a_step is None else a_step * 1e3,
                    "loss_scale": self.scaler.scale,
                    "skipped_steps": self.state.skipped_steps,
                    "images_seen": self.state.step * self.job.recipe.global_batch_size,
                    **digest,
                },
            )

    def evaluate(self) -> bool:
        """Count the validation set with the mean of all replicas' batch-norm buffers; False when stopped meanwhile."""
        with self.clock.paused("evaluate"):
            self.buffers.use_mean(self.job.recipe.replicas)
            with self.ema.in_place_of_weights() if self.ema is not None else nullcontext():
                found = evaluate(self.model, self.batches, self.job.val_images, self.session.device, self._may_count_on)
            self.buffers.use_own()
        if found is None:
            return False
        state = self.state
        self.last_evaluation = found
        best = found.top1_accuracy > state.best_top1_accuracy
        if best:
            state.best_top1_accuracy, state.best_step = found.top1_accuracy, state.step
        row = {"top1_accuracy": found.top1_accuracy, "top5_accuracy": found.top5_accuracy, "loss": found.loss}
        counts = {"correct_top1": found.correct_top1, "correct_top5": found.correct_top5, "images": found.images}
        state.evaluations.append({"step": state.step, **row, **counts})
        self.reporter.evaluated(found, state.step, best)
        if self.writer is not None:
            self.writer.record("evaluate", state.step, {**row, **counts})
        return True

    def save(self, *, best: bool) -> None:
        """Checkpoint this step. Collective: batch-norm buffers are gathered from every rank."""
        self.pulse.at("save", self.state.position)
        with self.clock.paused("save"):
            payload = snapshot(self)
            if self.saver is not None:
                self.saver.save(payload, self.state.step, best=best)

    def learning_rate(self, step: int | None = None) -> float:
        """The rate of the update that follows `step` updates; of the next one when None."""
        recipe = self.job.recipe
        rate: float = learning_rate(
            recipe.schedule,
            peak=self.job.peak_learning_rate,
            step=self.state.step if step is None else step,
            total_steps=self.job.total_steps,
            steps_per_epoch=self.job.steps_per_epoch,
            global_batch_size=recipe.global_batch_size,
        )
        return rate

    @property
    def reads_every_step(self) -> bool:
        """The host may look at the device's numbers at every step for nothing."""
        return self.job.capabilities.reads_are_free

    def reads_votes(self, position: int) -> bool:
        """All ranks look at the votes of the same steps."""
        return self.reads_every_step or position % _LOOK_EVERY_STEPS == 0

    @property
    def watches_overflow(self) -> bool:
        """Float16 on a chip that saturates: gradients look finite when they overflowed, and only its flag tells."""
        return self.scaler.enabled and self.job.capabilities.overflow == "saturate"

    def stop_requested(self) -> bool:
        """This rank was asked to stop."""
        return self.stop.requested

    def _may_count_on(self) -> bool:
        self.pulse.at("evaluate", self.state.position)
        return not self.stop.requested

    def _owes_evaluation(self) -> bool:
        """A run that was stopped while evaluating still owes that evaluation."""
        step, evaluations = self.state.step, self.state.evaluations
        due = step > 0 and self._is_due(self.job.evaluate_every_steps)
        return due and (not evaluations or evaluations[-1]["step"] != step)

    def _is_due(self, every: int) -> bool:
        """What happens every so many steps happens at the last one too; every 0 steps is never."""
        return every > 0 and (self.state.step % every == 0 or self.state.step == self.job.total_steps)
