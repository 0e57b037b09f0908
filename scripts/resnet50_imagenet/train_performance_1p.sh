#!/usr/bin/env bash
# ResNet-50 on ImageNet, 100 steps on 1 device for speed.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
# shellcheck disable=SC2034  # read by common.sh
recipe=resnet50_imagenet network=ResNet50_for_PyTorch kind=perf devices=1 replicas=1 batch_size=512 length='--steps 100'
run_training "$@"
