"""M306 to M313: how processes are started, and several devices in one process."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unisono.migrate.edits import Part, Span
from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import ACCELERATOR, is_import_part
from unisono.migrate.syntax import argument, literal_value

FAMILY = Family(
    RuleInfo("M306", "several devices in one process", FixKind.MANUAL),
    RuleInfo("M307", "processes started with spawn", FixKind.MANUAL),
    RuleInfo("M308", "the option --local_rank", FixKind.UNSAFE),
    RuleInfo("M314", "device_ids where the device may be the CPU", FixKind.SAFE),
    RuleInfo("M313", "torch.distributed.launch", FixKind.MANUAL),
)

DATA_PARALLEL = {
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.data_parallel",
    "torch.nn.data_parallel",
}
SPAWN = {"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "torch.multiprocessing.spawn.spawn"}
TAKES_DEVICE_IDS = {
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.distributed.barrier",
}
SPELLINGS = ("--local_rank", "--local-rank")


@FAMILY.on(cst.Attribute, cst.Name)
def data_parallel(draft: Draft, node: Any) -> None:
    """nn.DataParallel does not exist for NPUs."""
    view = draft.view
    parent = view.parent(node)
    if isinstance(parent, cst.Attribute) or is_import_part(view, node) or not view.names(node) & DATA_PARALLEL:
        return
    advice = (
        'start one process a device (torchrun --nproc_per_node N), init_process_group("hccl"), and wrap the model in '
        "DistributedDataParallel(model, device_ids=[local_rank]) with a DistributedSampler; on one device leave the wrapper out"
    )
    if isinstance(parent, cst.Arg):
        advice = "it asks for the wrapper's class: ask for DistributedDataParallel"
    draft.report("M306", node, "DataParallel is not supported on NPUs", advice)


@FAMILY.on(cst.Call)
def spawn(draft: Draft, node: Any) -> None:
    """`mp.spawn(worker, nprocs=torch.cuda.device_count())`: each child has to choose its device first."""
    view = draft.view
    if not view.names(node.func) & SPAWN:
        return
    worker = argument(node, "fn", 0)
    name = worker.value.value if worker is not None and isinstance(worker.value, cst.Name) else ""
    function = next((n for n in view.nodes if isinstance(n, cst.FunctionDef) and n.name.value == name), None)
    if function is None:
        draft.report(
            "M307",
            node,
            "the function it starts is in another file",
            "let it call set_device(rank) before anything touches the device",
        )
    elif not _sets_device(draft, function):
        call = "torch.accelerator.set_device_index(rank)" if draft.portable else "torch.npu.set_device(rank)"
        draft.report(
            "M307",
            node,
            f"{name} does not choose its device, so every process would take device 0",
            f"call {call} first in {name}",
        )


def _sets_device(draft: Draft, function: Any) -> bool:
    """True when set_device is called in the function, or in a function of this file that it calls."""
    view = draft.view
    called = {function.name.value}
    bodies = {n.name.value: n for n in view.nodes if isinstance(n, cst.FunctionDef)}
    pending = [function]
    while pending:
        source = view.source(pending.pop())
        if "set_device" in source:
            return True
        for name, body in bodies.items():
            if name not in called and f"{name}(" in source:
                called.add(name)
                pending.append(body)
    return False


@FAMILY.on(cst.Call)
def device_ids(draft: Draft, node: Any) -> None:
    """Portable target: DistributedDataParallel and barrier take no device_ids for the CPU."""
    view = draft.view
    if not draft.portable or not view.names(node.func) & TAKES_DEVICE_IDS:
        return
    for keyword in ("device_ids", "output_device"):
        given = argument(node, keyword)
        if (
            given is None
            or not isinstance(given.value, cst.List | cst.Name | cst.Attribute)
            or view.source(given.value) == "None"
        ):
            continue
        start = view.outer_span(given.value).start
        text = f'None if {ACCELERATOR} == "cpu" else '
        draft.change("M314", given, "it has to be None on the CPU", (Span(start, start), text), needs=(ACCELERATOR,))


@FAMILY.on(cst.Call)
def local_rank_option(draft: Draft, node: Any) -> None:
    """argparse's --local_rank: torchrun passes nothing, torch.distributed.launch passes --local-rank."""
    view = draft.view
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "add_argument":
        return
    given = [arg for arg in node.args if arg.keyword is None and literal_value(arg.value) in SPELLINGS]
    if not given:
        return
    spelt = {literal_value(arg.value) for arg in given}
    edits: list[tuple[Span, Part]] = []
    missing = next((s for s in SPELLINGS if s not in spelt), None)
    if missing:
        span = view.span(given[0].value)
        quote = given[0].value.quote
        edits.append((Span(span.end, span.end), f", {quote}{missing}{quote}"))
    needs: tuple[str, ...] = ()
    if not _reads_local_rank(draft):
        needs = ("os",)
        text = 'int(os.environ.get("LOCAL_RANK", {}))'
        default = argument(node, "default")
        if default is not None:
            value = view.source(default.value)
            edits.append(
                (view.span(default.value), text.format(value if isinstance(default.value, cst.Integer) else 0))
            )
        else:
            last = view.span(node.args[-1].value).end
            edits.append((Span(last, last), f", default={text.format(0)}"))
    if edits:
        draft.change(
            "M308",
            node,
            "torchrun passes no such option, but sets LOCAL_RANK; torch.distributed.launch writes it with a dash",
            *edits,
            needs=needs,
        )


def _reads_local_rank(draft: Draft) -> bool:
    return any(literal_value(node) == "LOCAL_RANK" for node in draft.view.nodes if isinstance(node, cst.SimpleString))


@FAMILY.on(cst.SimpleString)
def launch_module(draft: Draft, node: Any) -> None:
    """A command line in the source that starts torch.distributed.launch."""
    text = literal_value(node)
    if text is None or "torch.distributed.launch" not in text or isinstance(draft.view.parent(node), cst.Expr):
        return
    if len(text.split()) > 25:
        return  # a text for people
    draft.report(
        "M313",
        node,
        "torch.distributed.launch is deprecated",
        "write torchrun with the same options, and read LOCAL_RANK from the environment",
    )
