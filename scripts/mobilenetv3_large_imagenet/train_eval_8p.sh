#!/usr/bin/env bash
# MobileNetV3-Large on ImageNet: accuracy of the newest run, or of --checkpoint=PATH, on 8 devices.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
# shellcheck disable=SC2034  # read by common.sh
recipe=mobilenetv3_large_imagenet devices=8
run_evaluation "$@"
