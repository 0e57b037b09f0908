import torch
import torch_npu


def branches(device, x, args, model):
    if device.type == "npu":  #: M106
        model.to(device)
    if "npu" != x.device.type:  #: M106
        x = x.to(device)
    if device.type in ("npu", "mps"):  #: M106
        pass
    if str(device).startswith("npu"):  #: M106
        pass
    if "npu" in str(device):  #: M106
        pass
    if "npu" not in args.device:  #: M106
        pass
    if args.device == "npu:0":  #: M106
        pass
    if device.split(":")[0] == "npu":  #: M106
        pass
    if device.type in ("cuda", "npu"):
        pass
    if device.type == "cuda" or device.type == "npu":
        pass
    if args.mode == "cuda":  #: 
        pass
    if args.accelerator == "cuda":  #: M106
        pass
