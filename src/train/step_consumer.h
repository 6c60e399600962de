// The model as something that takes batches: steps of training that nobody keeps, to see how fast they are fed and
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
  // Records a step for each of the plan's shapes first, where steps are recorded. Keeps the references.
  StepConsumer(const Config& config, const Corpus& corpus, const BatchPlan& plan, const Mode& mode);
  ~StepConsumer();
  StepConsumer(const StepConsumer&) = delete;
  StepConsumer& operator=(const StepConsumer&) = delete;

  // Waits until the step is done. What is given refers to this.
  Consumer consumer();

  // Where steps are not recorded, what would have been.
  int64_t captures() const;
  int64_t retraces() const;
  std::vector<std::string> changes() const;   // what changed, a sentence for each retrace
  std::vector<StepSignature> shapes() const;  // seen so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace myxtts
