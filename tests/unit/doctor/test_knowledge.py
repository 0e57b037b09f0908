"""The knowledge tables are whole: two languages, sources, dates, and patterns that find what they are for."""

from __future__ import annotations

import re

import pytest

from unisono.doctor.knowledge import KINDS, LANGUAGES, entries, entry_of, module_of, patterns
from unisono.doctor.logs import code_by_words, codes_of
from unisono.doctor.logs_scan import candidates

# One line for each failure known by its words, as its writer prints it.
EXAMPLES = {
    "X101": "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 61.28 GiB total capacity)",
    "X102": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
    "X103": "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried",
    "X104": "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
    "X105": "The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
    "X106": "ImportError: /usr/lib/libtorch_npu.so: undefined symbol: _ZN3c104impl8GPUTrace13gpuTraceStateE",
    "X107": "ImportError: libhccl.so: cannot open shared object file: No such file or directory",
    "X108": "RuntimeError: Failed to load the backend extension: torch_npu. You can disable extension auto-loading",
    "X109": "RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
    "X110": "RuntimeError: Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, use spawn",
    "X111": "RuntimeError: CUDA error: device-side assert triggered",
    "X112": "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, unhandled system error (run with NCCL_DEBUG=INFO)",
    "X113": "[E1128 11:59:30.123 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)",
    "X114": "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:40511",
    "X115": "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
    "X116": "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but not set",
    "X117": "socket.gaierror: [Errno -2] Name or service not known",
    "X118": "[W socket.cpp:601] The client socket has failed to connect to [localhost]:29500 (errno: 111 - Connection refused).",
    "X119": "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed.",
    "X120": "PIL.UnidentifiedImageError: cannot identify image file 'train/cat/12.jpg'",
    "X121": "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
    "X122": "OSError: [Errno 28] No space left on device: 'runs/checkpoint.pt'",
    "X123": "PermissionError: [Errno 13] Permission denied: '/data/log'",
    "X124": "step 17: loss is nan, stopping training",
    "X125": "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
    "X126": "RuntimeError: Tensors must be contiguous",
    "X127": "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, npu:0 and cpu!",
    "X128": "AssertionError: Torch not compiled with CUDA enabled",
    "X129": "ModuleNotFoundError: No module named 'apex'",
    "X130": "rank 1 gave no sign of life for 180 s (limit 180 s) in forward of step 5",
    "X131": "Signal 9 (SIGKILL) received by PID 4242",
    "X132": "Signal 11 (SIGSEGV) received by PID 4242",
    "X133": "W1128 12:00:00.000000 1 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 7 closing signal SIGTERM",
    "X134": "InjectedFaultError: injected: this rank raises",
    "X135": "RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:144] no error",
    "X136": "The operator 'aten::linalg_lstsq.out' is not currently supported on the NPU backend and will fall back to run on the CPU.",
    "X137": "EZ9999: [PID: 775] 2025-02-16-12:18:25.258.321 Cannot find bin of op Range, integral key 0/1/|int64/ND/",
    "X139": "failed (exitcode: 1) local_rank: 1 (pid: 4242) of binary: /usr/bin/python",
    "X140": "FileNotFoundError: [Errno 2] No such file or directory: '/data/train'",
    "X142": "Fatal Python error: Aborted (core dumped)",
    "X143": "KeyboardInterrupt",
    "X144": "RuntimeError: CUDA error: invalid device ordinal",
    "X145": "RuntimeError: Error(s) in loading state_dict for ResNet:",
    "X146": "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x512 and 2048x10)",
    "X147": "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded",
    "X148": "OSError: [Errno 24] Too many open files",
    "X149": "IndexError: Target 2 is out of bounds.",
    "X150": "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: BROADCAST",
    "X151": "CUDA error: no kernel image is available for execution on the device",
    "X152": "HBM MULTI BIT ECC ERROR: the memory of the device holds data that cannot be corrected.",
    "X153": "RuntimeError: Caught RuntimeError in DataLoader worker process 0.",
    "X154": "ValueError: Default process group has not been initialized, please make sure to call init_process_group.",
    "X155": "Cluster Exception Location[IP/ID]:[192.0.2.10/1], Arrival Time:[Thu], ExceptionType:[Heartbeat Lost Occurred]",
    "X156": "Please source /usr/local/Ascend/ascend-toolkit/set_env.sh before running",
    "X157": "RuntimeError: torch_npu 2.7.1 requires torch==2.7.1 but found torch 2.8.0",
    "X158": "double free or corruption (!prev)",
    "X159": "RuntimeError: CUDA error: unspecified launch failure",
}


def test_at_least_250_codes_of_the_vendor_are_known() -> None:
    vendor = [code for code, entry in entries().items() if not code.startswith("X") and entry.source != "unisono"]
    assert len(vendor) >= 250


def test_every_entry_speaks_both_languages_and_names_its_source() -> None:
    for entry in entries().values():
        assert entry.kind in KINDS
        assert entry.source
        assert entry.source == "unisono" or re.fullmatch(r"20\d\d-\d\d", entry.date), entry.code
        for language in LANGUAGES:
            assert entry.title[language]
            assert entry.cause[language]
            assert entry.remedy[language]


def test_chinese_sentences_are_chinese_for_all_codes_that_a_training_job_can_end_with() -> None:
    """The doctor's, the benchmarks' and migrate's own codes (B, G, H, M) come with English words alone."""
    for entry in entries().values():
        if entry.source != "unisono" or entry.code[0] in "CDJPRSTV":
            for text in (entry.title["zh"], entry.cause["zh"]):  # a remedy may be a command alone
                assert re.search(r"[\u4e00-\u9fff]", text), entry.code


def test_every_pattern_has_an_example_here() -> None:
    assert {pattern.code for pattern in patterns()} == EXAMPLES.keys()


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_a_sentence_is_known_by_its_words(code: str) -> None:
    assert code_by_words(EXAMPLES[code]) == code


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_the_cheap_look_lets_no_known_sentence_pass(code: str) -> None:
    spans, held = candidates(EXAMPLES[code].encode())
    assert spans
    assert code_by_words(EXAMPLES[code], held) == code


@pytest.mark.parametrize(
    "line",
    [
        "step 10/20  epoch 0.50  loss 0.3012  lr 0.1  1,234 images/s",
        "E1234 is a room",
        "downloaded 107001 images",
        "epoch 12 ended, no errors",
        "https://e.org/EI00061",
        "evaluated at step 390: top-1 81.20 % (8120 of 10000)",
        "training finance model, all inference ranks peerless",
        "saved checkpoint without error",
    ],
)
def test_ordinary_lines_give_no_code(line: str) -> None:
    assert codes_of(line) == []


def test_a_code_of_cann_that_no_table_holds_is_placed_by_its_form() -> None:
    assert "EI0099" not in entries()
    assert module_of("EI0099") == "HCCL, collective communication"
    assert entry_of("EI0099").kind == "generic"
    assert codes_of("EI0099: [PID: 7] 2025-01-02-03:04:05.000.000 Something new.") == ["EI0099"]
    with pytest.raises(KeyError):
        entry_of("Q1")
