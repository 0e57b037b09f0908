import torch


def build(params, device_type, fused_available):
    use_fused = fused_available and device_type == "cuda"  #: M812
    extra = dict(fused=True) if use_fused else {}
    return torch.optim.AdamW(params, lr=1e-3, fused=True), extra  #: M812
