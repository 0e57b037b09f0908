#!/usr/bin/env bash
# MobileNetV3-Large on ImageNet, the whole schedule on 8 devices.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
# shellcheck disable=SC2034  # read by common.sh
recipe=mobilenetv3_large_imagenet network=MobileNetV3-Large_ID1784_for_PyTorch kind=acc devices=8 replicas=8 batch_size=1024 length='--epochs 600'
run_training "$@"
