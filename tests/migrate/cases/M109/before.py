import torch

tags = ["cuda", "fast"]  #: M109
mode = "cuda"  #: M109


def describe(kind):
    return {"kind": "cuda", "title": kind}  #: M109
