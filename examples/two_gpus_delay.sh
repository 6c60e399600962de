#!/usr/bin/env bash
# Multi-GPU mode with a buffer and a start delay of one's own.
source "$(dirname "$0")/common.sh"
need_gpus 2
run "$MYXTTS" train --train-data "$CORPUS" --checkpoint-dir "$RUNS/two_gpus_delay" --batch-size 4 --data-gpu 0 --model-gpu 1 \
  --buffer-size 75 --model-start-delay 3.5 --max-steps "$STEPS"
