import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def branches(device, x, args, model):
    if device.type in ("cuda", "npu"):  #: M106
        model.to(device)
    if x.device.type not in ("cuda", "npu"):  #: M106
        x = x.to(device)
    if device.type in ("cuda", "npu", "mps"):  #: M106
        pass
    if str(device).startswith(("cuda", "npu")):  #: M106
        pass
    if ("cuda" in str(device) or "npu" in str(device)):  #: M106
        pass
    if ("cuda" not in args.device and "npu" not in args.device):  #: M106
        pass
    if args.device == f"{ACCELERATOR}:0":  #: M106
        pass
    if device.split(":")[0] in ("cuda", "npu"):  #: M106
        pass
    if device.type in ("cuda", "npu"):
        pass
    if device.type == "cuda" or device.type == "npu":
        pass
    if args.mode == "cuda":  #: 
        pass
    if args.accelerator == "cuda":  #: M106
        pass
