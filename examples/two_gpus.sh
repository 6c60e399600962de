#!/usr/bin/env bash
# Multi-GPU mode: one GPU makes batches, the other trains.
source "$(dirname "$0")/common.sh"
need_gpus 2
run "$MYXTTS" train --train-data "$CORPUS" --checkpoint-dir "$RUNS/two_gpus" --batch-size 4 --data-gpu 0 --model-gpu 1 --max-steps "$STEPS"
