import torch
from apex import amp  #: M510 M501


def step(model, optimizer, loss, checkpoint):
    with amp.scale_loss(loss, optimizer) as scaled_loss:  #: M502 M509
        scaled_loss.backward()
    torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)  #: M508
    optimizer.step()  #: M502
    amp.load_state_dict(checkpoint["amp"])  #: M508
    return {"amp": amp.state_dict()}  #: M508
