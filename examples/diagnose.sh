#!/usr/bin/env bash
# Why would the GPU wait? Both diagnoses, before any training, and a page. A finding does not fail the example.
source "$(dirname "$0")/common.sh"
found() { run "$@" || [ $? = 1 ]; }
mkdir -p "$RUNS"
found "$MYXTTS" diagnose retracing --train-data "$CORPUS" --batch-size 4 --steps 3
found "$MYXTTS" diagnose bottleneck --train-data "$CORPUS" --batch-size 4 --num-batches 12 --consumer-ms 20 --html "$RUNS/diagnosis.html"
