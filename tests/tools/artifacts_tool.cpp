// Reads and writes the formats of src/artifacts, for tests against other implementations.
//   artifacts_tool copy FROM TO              verifies, reads and rewrites a safetensors file
//   artifacts_tool events FOLDER [STEP]      scalars, an image, audio and text; resuming from STEP
//   artifacts_tool heatmap FILE ROWS COLUMNS SCALE FLIP    values as text from standard input
//   artifacts_tool report FOLDER FILE        HTML report of a run
#include "artifacts/png.h"
#include "artifacts/run_report.h"
#include "artifacts/safetensors.h"
#include "artifacts/tensorboard.h"
#include "audio/wav.h"
#include "base/error.h"
#include "base/files.h"

#include <iostream>
#include <iterator>

using namespace myxtts;

namespace {

void copy(const std::string& from, const std::string& to) {
  const SafetensorsFile file(from);
  file.verify();
  std::vector<TensorView> tensors;
  for (const std::string& name : file.names()) tensors.push_back(file.tensor(name));
  write_safetensors(to, tensors, file.metadata());
}

std::vector<std::byte> tone() {
  std::vector<float> samples(1000);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<float>(i % 50) / 50;
  return make_wav(samples, 22050);
}

void events(const std::string& folder, int64_t from_step) {
  EventWriter writer(folder, from_step);
  for (int64_t step = from_step; step < from_step + 5; ++step) {
    writer.scalar("loss", step, 1.0F / static_cast<float>(step + 1));
  }
  const std::vector<float> values = {0, 1, 2, 3, 4, 5};
  writer.image("mel", 3'000'000'000, make_png_heatmap(values, 2, 3), 3, 2);
  writer.audio("voice", 4, tone(), 22050, 1000);
  writer.text("note", 4, "سلام *world*");
  writer.flush();
}

void heatmap(const std::string& file, int rows, int columns, int scale, bool flip) {
  std::vector<float> values;
  for (std::string word; std::cin >> word;) values.push_back(std::stof(word));
  write_file_atomically(file, make_png_heatmap(values, rows, columns, {.scale = scale, .low_rows_at_bottom = flip}));
}

void report(const std::string& folder, const std::string& file) {
  RunRecord run = read_run(folder);
  run.settings = {{"data.batch_size", "56"}, {"data.path", "corpora/<voice> & more"}, {"data.language", "فارسی"}};
  std::vector<float> ramp(80 * 200);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i % 200 + i / 200);
  run.pictures = {{"ramp", "A ramp", make_png_heatmap(ramp, 80, 200, {.scale = 3}), 600, 240}};
  const std::vector<std::byte> wav = tone();
  run.sounds = {{"tone", "یک صدا", std::string(reinterpret_cast<const char*>(wav.data()), wav.size()), 0, 0}};
  write_file_atomically(file, make_run_report(run));
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> given(words + 1, words + count);
  try {
    const std::string& command = given.at(0);
    if (command == "copy") copy(given.at(1), given.at(2));
    if (command == "events") events(given.at(1), given.size() > 2 ? std::stoll(given[2]) : 0);
    if (command == "report") report(given.at(1), given.at(2));
    if (command == "heatmap") {
      heatmap(given.at(1), std::stoi(given.at(2)), std::stoi(given.at(3)), std::stoi(given.at(4)), given.at(5) == "1");
    }
  } catch (const Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return error.exit_status();
  }
  return 0;
}
