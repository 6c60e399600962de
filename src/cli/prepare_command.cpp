#include "base/error.h"
#include "base/files.h"
#include "cli/commands.h"
#include "corpus/shapes.h"

#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

using Json = nlohmann::ordered_json;

// Text to the width of a bar, of the largest value's share.
std::string bar(int64_t value, int64_t largest, int width) {
  std::string text;
  for (int64_t i = 0; i < value * width / std::max<int64_t>(largest, 1); ++i) text += "█";
  return text.empty() && value > 0 ? "▏" : text;
}

// Lengths in ten equal steps: lower bound -> clips.
std::map<int64_t, int64_t> histogram(const std::vector<int64_t>& lengths) {
  if (lengths.empty()) return {};
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  const int64_t step = std::max<int64_t>(1, (*most - *least) / 10 + 1);
  std::map<int64_t, int64_t> counts;
  for (int64_t i = 0; i * step <= *most - *least; ++i) counts[*least + i * step] = 0;
  for (const int64_t length : lengths) ++counts[*least + (length - *least) / step * step];
  return counts;
}

Json to_json(const std::map<int64_t, int64_t>& counts) {
  Json json = Json::object();
  for (const auto& [from, count] : counts) json[fmt::format("{}", from)] = count;
  return json;
}

void print_report(const Console& console, const Corpus& corpus, const ShapePlan& plan, const ShapePlan& one_shape,
                  const std::map<int64_t, int64_t>& frames) {
  console.info("{}: {} clips accepted, {} rejected, {:.2f} hours", corpus.folder.string(), corpus.clips.size(),
               corpus.rejected.size(), corpus.hours());
  for (const auto& [format, count] : corpus.formats) console.info("  {} × {}", count, format);
  for (const auto& [rate, count] : corpus.sample_rates) {
    console.info("  {} × {} Hz{}", count, rate,
                 rate == corpus.mel.sample_rate ? "" : fmt::format(", resampled to {} Hz", corpus.mel.sample_rate));
  }
  for (const RejectedClip& clip : corpus.rejected) {
    console.info("  rejected: line {}, {}: {}", clip.line, clip.id.empty() ? "(no id)" : clip.id, clip.reason);
  }
  if (corpus.clips.empty()) return;
  int64_t largest = 0;
  for (const auto& [from, count] : frames) largest = std::max(largest, count);
  console.info("\nmel frames ({})", corpus.mel.name);
  for (const auto& [from, count] : frames) console.info("  {:>6}+ {:>6}  {}", from, count, bar(count, largest, 40));
  console.info("\nstatic shapes     batch × mel frames   text   clips");
  for (const Shape& shape : plan.shapes) {
    console.info("                  {:>5} × {:<10} {:>6}  {:>6}", shape.batch_size, shape.mel_frames, shape.text_length,
                 shape.clips.size());
  }
  console.info("padding {:.1f} % of all frames (one fixed shape: {:.1f} %)", 100 * plan.padding,
               100 * one_shape.padding);
}

Json report_json(const Corpus& corpus, const ShapePlan& plan, const std::map<int64_t, int64_t>& frames,
                 const std::map<int64_t, int64_t>& texts) {
  Json json;
  json["clips"] = corpus.clips.size() + corpus.rejected.size();
  json["hours"] = corpus.hours();
  json["accepted"] = corpus.clips.size();
  json["rejected"] = Json::array();
  for (const RejectedClip& clip : corpus.rejected) {
    json["rejected"].push_back(
        {{"id", clip.id}, {"path", clip.path.string()}, {"line", clip.line}, {"reason", clip.reason}});
  }
  json["sample_rates"] = Json::object();
  for (const auto& [rate, count] : corpus.sample_rates) json["sample_rates"][fmt::format("{}", rate)] = count;
  json["formats"] = corpus.formats;
  json["text_lengths"] = to_json(texts);
  json["mel_frames"] = to_json(frames);
  json["shapes"] = Json::array();
  for (const Shape& shape : plan.shapes) {
    json["shapes"].push_back({{"batch_size", shape.batch_size},
                              {"text", shape.text_length},
                              {"mel", shape.mel_frames},
                              {"clips", shape.clips.size()}});
  }
  json["padding"] = plan.padding;
  return json;
}

}  // namespace

void add_prepare_command(CLI::App& app, Program& program) {
  struct Options {
    std::string folder;
    bool deep = false, strict = false;
    ConfigFlags flags;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("prepare", "check a corpus and plan its static shapes before any training");
  command->add_option("DIR", options->folder, "folder with metadata.csv and wavs/")->required()->type_name("");
  command->add_flag("--deep", options->deep, "decode every clip, not only its header");
  command->add_flag("--strict", options->strict, "exit with 1 when a clip was rejected");
  add_json_option(*command, program);
  add_config_flags(*command, options->flags,
                   {"batch_size", "max_text_length", "max_mel_frames", "shape_buckets", "num_workers",
                    "metadata_format", "overlong", "mel_preset"});
  command->callback([&program, options] {
    program.run = [&program, options](Console& console) {
      const ResolvedConfig config = options->flags.load();
      Corpus corpus;
      {
        std::unique_ptr<ProgressBar> bar_shown;
        corpus = scan_corpus(options->folder, config.values, {options->deep, [&](uint64_t done, uint64_t total) {
                                                                if (!bar_shown)
                                                                  bar_shown = std::make_unique<ProgressBar>(
                                                                      console, "checking", total);
                                                                bar_shown->update(done);
                                                              }});
      }
      DataConfig single = config.values.data;
      single.shape_buckets = 1;
      const bool usable = !corpus.clips.empty();
      const ShapePlan plan = usable ? plan_shapes(corpus, config.values.data) : ShapePlan{};
      const ShapePlan one_shape = usable ? plan_shapes(corpus, single) : ShapePlan{};
      std::vector<int64_t> mel_frames, tokens;
      for (const CorpusClip& clip : corpus.clips) mel_frames.push_back(clip.mel_frames), tokens.push_back(clip.tokens);
      const auto frames = histogram(mel_frames);
      print_report(console, corpus, plan, one_shape, frames);
      if (!program.json_file.empty()) {
        write_file_atomically(program.json_file, report_json(corpus, plan, frames, histogram(tokens)).dump(2) + "\n");
      }
      if (!usable)
        fail("prepare", "{} has no clip that can be used: {}", options->folder, corpus.rejected.front().reason);
      return options->strict && !corpus.rejected.empty() ? 1 : 0;
    };
  });
}

}  // namespace myxtts
