# shellcheck shell=bash
# What the model scripts share. Sourced, never run; it defines functions and changes nothing by itself.
#
# A script sets recipe, network, kind (acc or perf), devices, replicas, batch_size (global) and length, then calls
#   run_training "$@"
# shellcheck disable=SC2154  # those variables

usage() {
  cat <<EOF
usage: bash ${0##*/} --data_path=DIR [options] [-- options of unisono train]
  --data_path=DIR        folder of the data set
  --batch_size=N         images in one step over all devices (${batch_size:-as in the checkpoint})
  --epochs=N, --steps=N  how long to train (${length:-as in the checkpoint})
  --learning_rate=X      for that batch; without it the recipe's rate is scaled to the batch
  --devices=N            how many devices (${devices})
  --platform=NAME        npu, cuda or cpu; the variable PLATFORM does the same (npu)
  --precision=NAME       fp32, bf16, fp16, O0, O1 or O2 (O2 on npu and cuda, fp32 on cpu)
  --output=DIR           where results go (${output})
  --checkpoint=PATH      train_eval_8p.sh: a checkpoint or run folder (the newest run below the output)
EOF
}

refuse() { # what, why, fix
  printf 'error: %s\n  why: %s\n  fix: %s\n' "$1" "$2" "$3" >&2
  exit 2
}

parse_options() {
  extra=()
  while (($#)); do
    case $1 in
      --help | -h) usage; exit 0 ;;
      --) shift; extra=("$@"); return ;;
      --epochs=* | --steps=*) length="${1%%=*} ${1#*=}" ;;
      --data_path=* | --batch_size=* | --learning_rate=* | --devices=* | --platform=* | --precision=* | --output=* | --checkpoint=*)
        local key=${1%%=*}
        [[ -n ${1#*=} ]] || refuse "$key is empty" "it takes a value" "write $key=VALUE"
        printf -v "${key#--}" '%s' "${1#*=}"
        ;;
      *) refuse "unknown option $1" "options have the form --key=value; see --help" "put options of unisono train behind --" ;;
    esac
    shift
  done
}

# Options that hold for every script of a model, before the command line is read.
set_defaults() {
  script_folder=$(cd "$(dirname "${BASH_SOURCE[-1]}")" && pwd)
  export ASCEND_DEVICE_ID=${ASCEND_DEVICE_ID:-0}
  platform=${PLATFORM:-npu}
  output=$script_folder/output/$ASCEND_DEVICE_ID
  data_path='' learning_rate='' precision='' checkpoint=''
}

prepare_platform() {
  if [[ $platform == npu ]]; then
    # Harnesses that have set up the environment say so.
    if [[ ${etp_running_flag:-} != true ]]; then
      # shellcheck source=/dev/null
      source "$script_folder/env_npu.sh"
    fi
    if [[ $devices == 1 && -z ${ASCEND_RT_VISIBLE_DEVICES:-} ]]; then
      export ASCEND_RT_VISIBLE_DEVICES=$ASCEND_DEVICE_ID
    fi
  fi
  if [[ -z $precision && $platform != cpu ]]; then
    precision=O2
  fi
}

find_unisono() {
  local checkout=${script_folder%/scripts/*}/.venv/bin/unisono
  if command -v unisono >/dev/null; then
    unisono=$(command -v unisono)
  elif [[ -x $checkout ]]; then
    unisono=$checkout
  else
    refuse "the command unisono is missing" "it is neither on PATH nor in $checkout" "pip install unisono, or make demo once"
  fi
}

# Everything the command prints goes to the log too. With exec the script becomes the command, so that its exit status
# and the signals it gets are the command's own.
become() { # log, command...
  local log=$1
  shift
  mkdir -p "${log%/*}" || refuse "cannot make ${log%/*}" "see the line above" "choose another folder with --output="
  exec > >(tee -i "$log") 2>&1
  printf '+'
  printf ' %q' "$@"
  printf '\n'
  exec "$@"
}

run_training() {
  set_defaults
  parse_options "$@"
  [[ $batch_size =~ ^[1-9][0-9]*$ ]] ||
    refuse "--batch_size=$batch_size" "it is a whole number of images" "write for example --batch_size=$((replicas * 16))"
  if ((batch_size % replicas)); then
    local below=$((batch_size / replicas * replicas))
    refuse "--batch_size=$batch_size does not share out over $replicas replicas" \
      "it is the batch of all of them together" "use $((below > 0 ? below : replicas)) or $((below + replicas))"
  fi
  find_unisono
  prepare_platform
  local command=("$unisono" train "$recipe" --platform "$platform" --devices "$devices" --replicas "$replicas"
    --batch-size "$((batch_size / replicas))")
  # shellcheck disable=SC2206  # two words on purpose: the option and its value
  command+=($length)
  [[ -z $data_path ]] || command+=(--data-path "$data_path")
  [[ -z $learning_rate ]] || command+=(--learning-rate "$learning_rate")
  [[ -z $precision ]] || command+=(--precision "$precision")
  command+=(--runs-dir "$output/runs" --modelzoo-log "$output" --network "$network"
    --case-name "${network}_bs${batch_size}_${devices}p_${kind}")
  become "$output/train_$ASCEND_DEVICE_ID.log" "${command[@]}" "${extra[@]}"
}

run_evaluation() {
  set_defaults
  parse_options "$@"
  if [[ -z $checkpoint ]]; then
    # shellcheck disable=SC2012  # names of run folders are recipe names and times
    checkpoint=$(ls -td "$output"/runs/"$recipe"/*/ 2>/dev/null | head -n 1) || true
    [[ -n $checkpoint ]] ||
      refuse "no run of $recipe below $output" "an evaluation needs a trained model" "train first, or give --checkpoint=PATH"
  fi
  find_unisono
  prepare_platform
  local command=("$unisono" evaluate "$checkpoint" --platform "$platform" --devices "$devices")
  [[ -z $data_path ]] || command+=(--data-path "$data_path")
  become "$output/eval_$ASCEND_DEVICE_ID.log" "${command[@]}" "${extra[@]}"
}

# The environment of NPU jobs. Safe to repeat, and without a driver or toolkit it only sets log levels. Values that are
# set already stay.
set_npu_environment() {
  if [[ -z ${ASCEND_TOOLKIT_HOME:-} ]]; then
    local root=/usr/local/Ascend info=/etc/Ascend/ascend_cann_install.info file
    if [[ -r $info ]]; then
      root=$(sed -n 's/^Install_Path=//p' "$info" | head -n 1)
    fi
    for file in "$root/ascend-toolkit/set_env.sh" "$root/nnae/set_env.sh"; do
      if [[ -r $file ]]; then
        # The toolkit's script reads variables that may be unset, and its commands may fail.
        local flags=$-
        set +eu
        # shellcheck source=/dev/null
        source "$file"
        if [[ $flags == *e* ]]; then set -e; fi
        if [[ $flags == *u* ]]; then set -u; fi
        break
      fi
    done
  fi
  export ASCEND_SLOG_PRINT_TO_STDOUT=${ASCEND_SLOG_PRINT_TO_STDOUT:-0}
  export ASCEND_GLOBAL_LOG_LEVEL=${ASCEND_GLOBAL_LOG_LEVEL:-3}
  export ASCEND_GLOBAL_EVENT_ENABLE=${ASCEND_GLOBAL_EVENT_ENABLE:-0}
  export TASK_QUEUE_ENABLE=${TASK_QUEUE_ENABLE:-1}
  export HCCL_WHITELIST_DISABLE=${HCCL_WHITELIST_DISABLE:-1}
  quiet_device_logs
}

# Errors alone in the device's own log, as the model zoo sets it; needs a driver, its tool, and the right to change it.
quiet_device_logs() {
  command -v msnpureport >/dev/null || return 0
  local device
  for device in /dev/davinci[0-9]*; do
    [[ -c $device ]] || continue
    msnpureport -g error -d "${device#/dev/davinci}" >/dev/null 2>&1 || true
  done
  msnpureport -e disable >/dev/null 2>&1 || true
}
