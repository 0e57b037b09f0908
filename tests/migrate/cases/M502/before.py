from apex import amp  #: M510 M501


def train(loader, model, criterion, optimizer, args):
    for images, target in loader:
        output = model(images)  #: M509
        loss = criterion(output, target)
        optimizer.zero_grad()
        if args.fp16:
            with amp.scale_loss(loss, optimizer) as scaled_loss:  #: M502
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()  #: M502
