"""M8: switches of cuDNN and TF32, memory formats, compilation, graphs, fused optimizers."""

from __future__ import annotations

from typing import Any

import libcst as cst

from unisono.migrate.findings import FixKind, RuleInfo
from unisono.migrate.rules.base import Draft, Family
from unisono.migrate.rules.shared import ACCELERATOR, is_use
from unisono.migrate.syntax import argument, literal_value

FAMILY = Family(
    RuleInfo("M801", "a switch that NPUs do not read", FixKind.MANUAL),
    RuleInfo("M802", "cudnn.deterministic", FixKind.MANUAL),
    RuleInfo("M803", "asking for cuDNN", FixKind.MANUAL),
    RuleInfo("M804", "TF32", FixKind.UNSAFE),
    RuleInfo("M805", "float32 matmul precision", FixKind.MANUAL),
    RuleInfo("M806", "the choice of an attention kernel", FixKind.MANUAL),
    RuleInfo("M807", "the cache of FFT plans", FixKind.SAFE),
    RuleInfo("M808", "the memory format channels_last", FixKind.MANUAL),
    RuleInfo("M809", "torch.compile", FixKind.MANUAL),
    RuleInfo("M810", "TorchScript", FixKind.MANUAL),
    RuleInfo("M811", "CUDA graphs", FixKind.MANUAL),
    RuleInfo("M812", "fused optimizers of PyTorch", FixKind.UNSAFE),
)

HF32 = {"torch.backends.cuda.matmul.allow_tf32": "matmul", "torch.backends.cudnn.allow_tf32": "conv"}
ATTENTION = {
    "enable_flash_sdp",
    "enable_mem_efficient_sdp",
    "enable_math_sdp",
    "enable_cudnn_sdp",
    "sdp_kernel",
    "flash_sdp_enabled",
    "math_sdp_enabled",
}
GRAPHS = {"torch.cuda.CUDAGraph", "torch.cuda.graph", "torch.cuda.make_graphed_callables", "torch.cuda.graphs.graph"}
FUSED = {"torch.optim.Adam", "torch.optim.AdamW", "torch.optim.SGD", "torch.optim.Adagrad"}
DETERMINISTIC = "torch.use_deterministic_algorithms(True), and HCCL_DETERMINISTIC=true in the environment"


@FAMILY.on(cst.Attribute, cst.Name)
def switch(draft: Draft, node: Any) -> None:
    """torch.backends.cudnn.*, torch.backends.cuda.*, and functions of attention kernels."""
    view = draft.view
    if not is_use(view, node):
        return
    names = view.names(node)
    name = next((n for n in sorted(names) if n.startswith("torch.")), "")
    if name.startswith("torch.backends.cudnn."):
        _cudnn(draft, node, name)
    elif name in HF32:
        _hf32(draft, node, name)
    elif name.startswith("torch.backends.cuda."):
        _cuda_backend(draft, node, name)
    elif name in ("torch.nn.attention.sdpa_kernel", "torch.nn.attention.SDPBackend.FLASH_ATTENTION"):
        draft.report("M806", node, "the choice of an attention kernel is not supported on NPUs", "leave the choice out")
    elif name in GRAPHS:
        draft.report("M811", node, "graphs work for inference only on NPUs", "in training leave graph capture out")
    elif name in ("torch.channels_last", "torch.channels_last_3d"):
        draft.report(
            "M808",
            node,
            "the format is not supported by every NPU operator",
            "torch.contiguous_format, or leave memory_format out",
        )


def _cudnn(draft: Draft, node: Any, name: str) -> None:
    view = draft.view
    last = name.rpartition(".")[2]
    parent = view.parent(node)
    assign = view.parent(parent) if isinstance(parent, cst.AssignTarget) else None
    if name in HF32:
        _hf32(draft, node, name)
    elif last == "deterministic" and assign is not None:
        if view.source(assign.value) == "False":
            draft.report("M801", node, "NPUs do not read it", "leave it or remove it", hint=True)
        elif "use_deterministic_algorithms" not in view.text:
            draft.report(
                "M802", node, "torch_npu looks at the deterministic switch of PyTorch, not at cuDNN's", DETERMINISTIC
            )
        else:
            draft.report(
                "M801", node, "NPUs do not read it; use_deterministic_algorithms is called", "leave it", hint=True
            )
    elif assign is not None or last == "flags":
        draft.report("M801", node, "NPUs do not read it", "leave it or remove it", hint=True)
    elif last in ("enabled", "version", "is_available"):
        draft.report(
            "M803",
            node,
            "there is no cuDNN: version() is None and is_available() False",
            "remove the question, or ask whether an accelerator is there",
        )
    else:
        draft.report("M801", node, "NPUs do not read it", "leave it or remove it", hint=True)


def _hf32(draft: Draft, node: Any, name: str) -> None:
    if draft.portable:
        draft.report(
            "M804",
            node,
            "NPUs do not read it; HF32 is the counterpart",
            f"torch.npu.{HF32[name]}.allow_hf32, where torch.npu is there",
            hint=True,
        )
        return
    new = f"{draft.state['torch']}.npu.{HF32[name]}.allow_hf32"
    default = (
        "is off by default"
        if HF32[name] == "matmul"
        else "is on by default, so convolutions are less exact unless it is switched off"
    )
    draft.replace(
        "M804", node, f"HF32 is the counterpart of TF32, with another precision; it {default}", new, needs=("torch",)
    )


def _cuda_backend(draft: Draft, node: Any, name: str) -> None:
    last = name.rpartition(".")[2]
    if last in ATTENTION:
        draft.report("M806", node, "the choice of an attention kernel is not supported on NPUs", "leave the choice out")
    elif "cufft_plan_cache" in name:
        if draft.portable:
            draft.report(
                "M807", node, "the cache of cuFFT", "torch.npu.backends.fft_plan_cache where torch.npu is there"
            )
            return
        new = name.replace(
            "torch.backends.cuda.cufft_plan_cache", f"{draft.state['torch']}.npu.backends.fft_plan_cache"
        )
        draft.replace("M807", node, "torch_npu has the same cache", new, needs=("torch",))
    elif last in ("is_built",):
        draft.report(
            "M803", node, "it says whether PyTorch was built for CUDA", "ask whether an accelerator is available"
        )
    elif name != "torch.backends.cuda.matmul":
        draft.report("M801", node, "NPUs do not read it", "leave it or remove it", hint=True)


@FAMILY.on(cst.Call)
def calls(draft: Draft, node: Any) -> None:
    """torch.compile, torch.jit, matmul precision, fused=True."""
    view = draft.view
    names = view.names(node.func)
    if "torch.compile" in names:
        _compile(draft, node)
    elif (
        "torch.set_float32_matmul_precision" in names
        and literal_value(node.args[0].value if node.args else None) != "highest"
    ):
        draft.report(
            "M805", node, "NPUs do not read it", "torch.npu.matmul.allow_hf32 = True is the counterpart", hint=True
        )
    elif names & FUSED:
        fused = argument(node, "fused")
        if fused is None or view.source(fused.value) != "True":
            return
        text = f'{ACCELERATOR} == "cuda"' if draft.portable else "False"
        draft.change(
            "M812",
            fused,
            "the fused kernels are CUDA's; torch_npu.optim.NpuFusedAdamW and its kind are the NPU's",
            (view.span(fused.value), text),
            needs=(ACCELERATOR,) if draft.portable else (),
        )


def _compile(draft: Draft, node: Any) -> None:
    backend = argument(node, "backend")
    if backend is not None and literal_value(backend.value) in (
        "npu",
        "npugraphs",
        "npugraph_ex",
        "aot_eager",
        "eager",
    ):
        return
    advice = 'torch.compile(model, backend="npu"), or leave it out'
    if draft.portable:
        advice = f'torch.compile(model, backend="npu" if {ACCELERATOR} == "npu" else "inductor"), or leave it out'
    draft.report("M809", node, "the default compiler writes Triton for GPUs", advice)


@FAMILY.on(cst.Attribute, cst.Name)
def torch_script(draft: Draft, node: Any) -> None:
    """torch.jit.script works as it is; transfer_to_npu turns it into a no-op."""
    if not is_use(draft.view, node):
        return
    if draft.view.names(node) & {"torch.jit.script", "torch.jit.trace"}:
        draft.report(
            "M810",
            node,
            "TorchScript runs on NPUs without change",
            "nothing; a trace holds the device it was made on",
            hint=True,
        )
