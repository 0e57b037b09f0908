import amp_C  #: M510
from apex.multi_tensor_apply import multi_tensor_applier  #: M510


def scale(overflow, tensors):
    multi_tensor_applier(amp_C.multi_tensor_scale, overflow, tensors, 0.5)  #: M507
