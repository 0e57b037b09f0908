import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def build(params, device_type, fused_available):
    use_fused = fused_available and device_type == "cuda"  #: M812
    extra = dict(fused=True) if use_fused else {}
    return torch.optim.AdamW(params, lr=1e-3, fused=ACCELERATOR == "cuda"), extra  #: M812
