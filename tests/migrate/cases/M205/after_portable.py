import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

properties = torch.get_device_module(ACCELERATOR).get_device_properties(0)  #: M201
print(properties.name, properties.total_memory)
print(properties.multi_processor_count)  #: M205
print(torch.get_device_module(ACCELERATOR).get_device_properties(0).major)  #: M201 M205
if torch.get_device_module(ACCELERATOR).get_device_capability()[0] >= 8:  #: M201 M205
    print("new")
