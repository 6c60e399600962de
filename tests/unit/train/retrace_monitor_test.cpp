#include "train/retrace_monitor.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

TEST(RetraceMonitor, declared_shapes_are_captured_once_and_are_no_retraces) {
  RetraceMonitor monitor({{16, 40, 200, false}, {16, 80, 400, false}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(monitor.see({16, 40, 200, false}));
    EXPECT_FALSE(monitor.see({16, 80, 400, false}));
  }
  EXPECT_EQ(monitor.captures(), 2);
  EXPECT_EQ(monitor.retraces(), 0);
}

TEST(RetraceMonitor, another_shape_is_named_and_counted_once) {
  RetraceMonitor monitor({{16, 40, 200, false}, {16, 80, 400, false}});
  monitor.see({16, 80, 400, false});
  EXPECT_EQ(monitor.see({16, 80, 408, false}), "mel frames 408 instead of 400");
  EXPECT_FALSE(monitor.see({16, 80, 408, false}));
  EXPECT_EQ(monitor.see({12, 40, 200, false}), "rows 12 instead of 16");
  EXPECT_EQ(monitor.retraces(), 2);
}

TEST(RetraceMonitor, without_declared_shapes_all_but_the_first_are_retraces) {
  RetraceMonitor monitor({});
  EXPECT_FALSE(monitor.see({16, 40, 200, false}));
  EXPECT_FALSE(monitor.see({16, 40, 200, true}));
  EXPECT_TRUE(monitor.see({16, 41, 200, false}));
  EXPECT_EQ(monitor.retraces(), 1);
  EXPECT_EQ(monitor.captures(), 3);
}

}  // namespace
}  // namespace myxtts
