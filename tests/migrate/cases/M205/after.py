import torch
import torch_npu

properties = torch.npu.get_device_properties(0)  #: M201
print(properties.name, properties.total_memory)
print(properties.multi_processor_count)  #: M205
print(torch.npu.get_device_properties(0).major)  #: M201 M205
if torch.npu.get_device_capability()[0] >= 8:  #: M201 M205
    print("new")
