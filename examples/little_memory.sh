#!/usr/bin/env bash
# The smallest model, small batches and no long clip, for little memory.
source "$(dirname "$0")/common.sh"
run "$MYXTTS" train --train-data "$CORPUS" --checkpoint-dir "$RUNS/little_memory" --model-size tiny --batch-size 8 \
  --max-text-length 150 --max-mel-frames 600 --max-steps "$STEPS"
