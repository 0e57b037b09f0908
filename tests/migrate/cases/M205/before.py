import torch

properties = torch.cuda.get_device_properties(0)  #: M201
print(properties.name, properties.total_memory)
print(properties.multi_processor_count)  #: M205
print(torch.cuda.get_device_properties(0).major)  #: M201 M205
if torch.cuda.get_device_capability()[0] >= 8:  #: M201 M205
    print("new")
