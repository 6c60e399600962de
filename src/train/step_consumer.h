// The model as a consumer of batches: training steps whose result is discarded, to measure how fast they are fed and
// whether their shapes stay the same. No libtorch here.
#pragma once

#include "loader/consumer.h"
#include "loader/mode.h"
#include "plan/batch_plan.h"
#include "settings/config.h"
#include "train/retrace_monitor.h"

#include <memory>
#include <string>
#include <vector>

namespace myxtts {

class StepConsumer {
 public:
  // Captures a step for each of the plan's shapes first, if steps are captured. Keeps the reference to the config.
  StepConsumer(const Config& config, const Corpus& corpus, const BatchPlan& plan, const Mode& mode);
  ~StepConsumer();
  StepConsumer(const StepConsumer&) = delete;
  StepConsumer& operator=(const StepConsumer&) = delete;

  // Waits until the step is done. What is given refers to this.
  Consumer consumer();

  // If steps are not captured, the captures that there would have been.
  int64_t captures() const;
  int64_t retraces() const;
  std::vector<std::string> changes() const;   // what changed, a sentence for each retrace
  std::vector<StepSignature> shapes() const;  // seen so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace myxtts
