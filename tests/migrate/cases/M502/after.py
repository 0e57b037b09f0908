import torch

grad_scaler = torch.amp.GradScaler("npu", enabled=False)


def train(loader, model, criterion, optimizer, args):
    for images, target in loader:
        with torch.autocast("npu", dtype=torch.float16, enabled=grad_scaler.is_enabled()):
            output = model(images)  #: M509
            loss = criterion(output, target)
        optimizer.zero_grad()
        if args.fp16:
            grad_scaler.scale(loss).backward()
        else:
            loss.backward()
        grad_scaler.step(optimizer)
        grad_scaler.update()  #: M502
