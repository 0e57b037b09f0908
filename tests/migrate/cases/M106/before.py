import torch


def branches(device, x, args, model):
    if device.type == "cuda":  #: M106
        model.to(device)
    if "cuda" != x.device.type:  #: M106
        x = x.to(device)
    if device.type in ("cuda", "mps"):  #: M106
        pass
    if str(device).startswith("cuda"):  #: M106
        pass
    if "cuda" in str(device):  #: M106
        pass
    if "cuda" not in args.device:  #: M106
        pass
    if args.device == "cuda:0":  #: M106
        pass
    if device.split(":")[0] == "cuda":  #: M106
        pass
    if device.type in ("cuda", "npu"):
        pass
    if device.type == "cuda" or device.type == "npu":
        pass
    if args.mode == "cuda":  #: 
        pass
    if args.accelerator == "cuda":  #: M106
        pass
