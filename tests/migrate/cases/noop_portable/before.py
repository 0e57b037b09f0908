import torch

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
model = torch.nn.Linear(2, 2).to(device)
with torch.autocast(device.type):
    model(torch.ones(1, 2, device=device))
