import torch
from torch.profiler import ProfilerActivity, profile, record_function  #: M914


def run(model, x):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:  #: M914
        with record_function("forward"):
            model(x)
    handler = torch.profiler.tensorboard_trace_handler("log")  #: M914
    return prof, handler
