import torch


def capture(graph, model, x):
    with torch.cuda.graph(graph):  #: M201 M811
        y = model(x)
    return torch.cuda.make_graphed_callables(model, (x,)), y  #: M201 M811
