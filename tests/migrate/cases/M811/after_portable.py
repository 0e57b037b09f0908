import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def capture(graph, model, x):
    with torch.get_device_module(ACCELERATOR).graph(graph):  #: M201 M811
        y = model(x)
    return torch.get_device_module(ACCELERATOR).make_graphed_callables(model, (x,)), y  #: M201 M811
