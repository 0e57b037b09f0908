import torch

grad_scaler = torch.amp.GradScaler("npu", enabled=False)


class Trainer:
    def train_step(self, images, target):
        images = images.npu(non_blocking=True)  #: M102
        with torch.autocast("npu", dtype=torch.float16, enabled=grad_scaler.is_enabled()):
            output = self.model(images)  #: M509
            # the loss of this batch
            loss = self.criterion(
                output,
                target,
            )
        self.optimizer.zero_grad()
        grad_scaler.scale(loss).backward()
        grad_scaler.step(self.optimizer)
        grad_scaler.update()  #: M502
