#include "artifacts/run_report.h"

#include "base/error.h"
#include "base/files.h"

#include <cmath>

#include <gtest/gtest.h>

namespace myxtts {
namespace {
namespace fs = std::filesystem;

class RunReport : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / "myxtts_run_report_test";
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  RunRecord read(std::string_view lines) const {
    write_file_atomically(folder / "metrics.jsonl", lines);
    return read_run(folder);
  }
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_F(RunReport, the_first_sentence_says_how_it_went) {
  const RunRecord run = read(R"({"step":1,"epoch":0,"loss":4.0,"step_ms":500,"input_wait_ms":100,"retraces":0}
{"step":11,"epoch":0,"loss":2.5,"step_ms":50,"input_wait_ms":0,"retraces":1}
{"step":11,"validation_loss":3.25}
)");
  EXPECT_EQ(run.name, "myxtts_run_report_test");
  const std::string page = make_run_report(run);
  EXPECT_TRUE(has(page,
                  "<p dir=\"auto\">11 steps in 1.0 seconds; loss 4 → 2.5; validation loss 3.25 → 3.25; 1 retrace; "
                  "10.0 % of the time spent waiting for input.</p>"))
      << page;
  EXPECT_FALSE(has(page, "http"));
}

TEST_F(RunReport, a_half_written_line_is_passed_over) {
  const RunRecord run =
      read("{\"step\":1,\"loss\":4}\n{\"step\":2,\"lo\n[1]\nnonsense\n{\"step\":3,\"loss\":3}\n{\"step\":4,\"loss\":2");
  const std::vector<Point>& loss = run.metrics.at("loss");
  ASSERT_EQ(loss.size(), 2U);
  EXPECT_EQ(loss[1].x, 3);
}

TEST_F(RunReport, after_going_back_to_a_checkpoint_the_later_lines_count) {
  const RunRecord run = read(
      "{\"step\":1,\"loss\":4}\n{\"step\":2,\"loss\":3}\n{\"step\":3,\"loss\":9,\"validation_loss\":8}\n"
      "{\"step\":2,\"loss\":2}\n");
  const std::vector<Point>& loss = run.metrics.at("loss");
  ASSERT_EQ(loss.size(), 2U);
  EXPECT_EQ(loss[1].y, 2);
  EXPECT_FALSE(run.metrics.contains("validation_loss"));
}

TEST_F(RunReport, a_run_that_goes_on_is_read_from_where_it_was) {
  const std::string lines[] = {R"({"step":1,"loss":4,"rank_ms":[1,3],"rank_input_wait_ms":[0,1]})",
                               R"({"step":2,"loss":3,"rank_ms":[3,5],"rank_input_wait_ms":[2,1]})",
                               R"({"step":3,"loss":2})"};
  std::string written = lines[0] + "\n" + lines[1].substr(0, 20);
  write_file_atomically(folder / "metrics.jsonl", written);
  RunReader reader(folder);
  EXPECT_EQ(reader.read().metrics.at("loss").size(), 1U);
  written += lines[1].substr(20) + "\n" + lines[2] + "\n";
  written[2] = 'S';  // a line that was read is not read again
  write_file_atomically(folder / "metrics.jsonl", written);
  const RunRecord& run = reader.read();
  ASSERT_EQ(run.metrics.at("loss").size(), 3U);
  EXPECT_EQ(run.metrics.at("loss")[2].y, 2);
  ASSERT_EQ(run.ranks.size(), 2U);
  EXPECT_EQ(run.ranks[1].own_ms, 4);
  EXPECT_EQ(run.ranks[0].input_wait_ms, 1);
}

TEST_F(RunReport, a_loss_that_is_not_a_number_is_said) {
  const RunRecord run = read("{\"step\":1,\"loss\":4}\n{\"step\":2,\"loss\":null}\n");
  EXPECT_TRUE(std::isnan(run.metrics.at("loss")[1].y));
  EXPECT_TRUE(has(make_run_report(run), "1 values cannot be drawn"));
}

TEST_F(RunReport, what_a_cpu_cannot_measure_has_no_chart) {
  const std::string line = R"({"step":1,"loss":4,"gpu_busy":null,"padding":0.1,"validation_cepstral_distortion":8})";
  const std::string page = make_run_report(read(line + "\n"));
  EXPECT_FALSE(has(page, "GPU busy") || has(page, "cannot be drawn"));
  EXPECT_TRUE(has(page, "Padding") && has(page, "Mel-cepstral distortion"));
  EXPECT_FALSE(has(page, "Parts of the validation loss")) << "its unit is another";
  EXPECT_TRUE(has(make_run_report(read(R"({"step":1,"gpu_busy":0.9})"
                                       "\n")),
                  "GPU busy"));
}

TEST_F(RunReport, a_run_without_lines_still_has_a_page) {
  EXPECT_TRUE(has(make_run_report(read("")), "No step has been logged yet."));
  EXPECT_THROW(read_run(folder / "nowhere"), Error);
}

TEST_F(RunReport, settings_pictures_and_sounds_are_shown_and_escaped) {
  RunRecord run = read("{\"step\":1,\"loss\":4}\n");
  run.settings = {{"data.batch_size", "56"}, {"data.path", "<script>\"a&b\""}};
  run.pictures = {{"alignment", "alignment <1>", "png", 1, 1}};
  run.sounds = {{"spoken", "سلام", "wav!", 8000, 1}};
  const std::string page = make_run_report(run);
  EXPECT_TRUE(has(page, "<td dir=\"auto\">&lt;script&gt;&quot;a&amp;b&quot;</td>"));
  EXPECT_TRUE(has(page, "alt=\"alignment &lt;1&gt;\" src=\"data:image/png;base64,cG5n\""));
  EXPECT_TRUE(has(page, "src=\"data:audio/wav;base64,d2F2IQ==\""));
  EXPECT_FALSE(has(page, "<script>"));
}

}  // namespace
}  // namespace myxtts
