import torch
import torch_npu
from torch_npu.profiler import ProfilerActivity, profile
from torch.profiler import record_function  #: M914


def run(model, x):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]) as prof:  #: M914
        with record_function("forward"):
            model(x)
    handler = torch_npu.profiler.tensorboard_trace_handler("log")  #: M914
    return prof, handler
