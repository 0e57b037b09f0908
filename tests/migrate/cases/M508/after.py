import torch

grad_scaler = torch.amp.GradScaler("npu", enabled=False)


def step(model, optimizer, loss, checkpoint):
    grad_scaler.scale(loss).backward()
    grad_scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_((p for group in optimizer.param_groups for p in group["params"]), 1.0)  #: M508
    grad_scaler.step(optimizer)
    grad_scaler.update()  #: M502
    grad_scaler.load_state_dict(checkpoint["amp"])  #: M508
    return {"amp": grad_scaler.state_dict()}  #: M508
