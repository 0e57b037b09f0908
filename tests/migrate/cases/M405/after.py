import torch
import torch_npu


class Square(torch.autograd.Function):
    @staticmethod
    @torch.npu.amp.custom_fwd  #: M405
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.npu.amp.custom_bwd  #: M405
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad
