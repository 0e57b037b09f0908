from apex import amp  #: M510 M501


class Trainer:
    def train_step(self, images, target):
        images = images.cuda(non_blocking=True)  #: M102
        output = self.model(images)  #: M509
        # the loss of this batch
        loss = self.criterion(
            output,
            target,
        )
        self.optimizer.zero_grad()
        with amp.scale_loss(loss, self.optimizer) as scaled:  #: M502
            scaled.backward()
        self.optimizer.step()  #: M502
