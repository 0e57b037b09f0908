import torch
import torch_npu


def capture(graph, model, x):
    with torch.npu.graph(graph):  #: M201 M811
        y = model(x)
    return torch.npu.make_graphed_callables(model, (x,)), y  #: M201 M811
