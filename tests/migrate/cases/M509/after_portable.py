import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
grad_scaler = torch.amp.GradScaler(ACCELERATOR, enabled=False)


class Trainer:
    def train_step(self, images, target):
        images = images.to(ACCELERATOR, non_blocking=True)  #: M102
        with torch.autocast(ACCELERATOR, dtype=torch.float16, enabled=grad_scaler.is_enabled()):
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
