#include "session/prepare_report.h"

#include "artifacts/chart.h"
#include "artifacts/html_page.h"
#include "base/counted.h"

#include <algorithm>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace myxtts {
namespace {

using Json = nlohmann::ordered_json;

// A bar of text, of the largest value's share of `width`.
std::string bar(int64_t value, int64_t largest, int width) {
  std::string text;
  for (int64_t i = 0; i < value * width / std::max<int64_t>(largest, 1); ++i) text += "█";
  return text.empty() && value > 0 ? "▏" : text;
}

// Lengths in ten equal steps.
template <typename Length>
std::map<int64_t, int64_t> histogram(std::span<const ClipLength> clips, const Length& length) {
  if (clips.empty()) return {};
  int64_t least = length(clips[0]), most = least;
  for (const ClipLength& clip : clips) least = std::min(least, length(clip)), most = std::max(most, length(clip));
  const int64_t step = (most - least) / 10 + 1;
  std::map<int64_t, int64_t> counts;
  for (int64_t from = least; from <= most; from += step) counts[from] = 0;
  for (const ClipLength& clip : clips) ++counts[least + (length(clip) - least) / step * step];
  return counts;
}

int64_t largest_of(const std::map<int64_t, int64_t>& counts) {
  int64_t largest = 1;
  for (const auto& [from, count] : counts) largest = std::max(largest, count);
  return largest;
}

Json json_of(const std::map<int64_t, int64_t>& counts) {
  Json json = Json::object();
  for (const auto& [from, count] : counts) json[fmt::format("{}", from)] = count;
  return json;
}

Json json_of(const std::vector<RejectedClip>& clips) {
  Json list = Json::array();
  for (const RejectedClip& clip : clips) {
    list.push_back({{"id", clip.id},
                    {"path", clip.path},
                    {"line", clip.line},
                    {"code", name_of(clip.code)},
                    {"reason", clip.reason}});
  }
  return list;
}

std::string chart_of(const std::string& title, const std::string& unit, const std::map<int64_t, int64_t>& counts) {
  std::vector<HistogramBar> bars;
  for (const auto& [from, count] : counts) bars.push_back({static_cast<double>(from), count});
  return make_histogram(title, unit, bars);
}

void add_table(HtmlPage& page, const std::string& title, const std::vector<RejectedClip>& clips) {
  if (clips.empty()) return;
  std::vector<TableRow> rows;
  for (const RejectedClip& clip : clips) rows.push_back({fmt::format("{}", clip.line), clip.id, clip.reason});
  page.section(fmt::format("{} ({})", title, clips.size()));
  page.table({"line", "id", "why"}, rows);
}

// The finding, and of how many clips it is one.
std::string how_many(const Advice& advice) {
  if (advice.clips.empty()) return advice.finding;
  return fmt::format("{} of {}: {}", advice.clips.size(), counted(advice.examined, "clip"), advice.finding);
}

std::string speaker_name(const CorpusSummary& summary, uint32_t speaker) {
  const std::string& name = summary.speakers[speaker];
  return name.empty() ? "(not named)" : name;
}

}  // namespace

PrepareReport::PrepareReport(const std::string& where, const Corpus& corpus, const DataConfig& data,
                             std::vector<Advice> advice)
    : where_(where), corpus_(corpus), summary_(corpus.index.summary()), advice_(std::move(advice)) {
  const std::span<const ClipLength> lengths = corpus.index.lengths();
  if (lengths.empty()) return;
  plan_ = plan_shapes(lengths, data);
  DataConfig single = data;
  single.shape_buckets = 1;
  padding_of_one_shape_ = plan_shapes(lengths, single).padding;
  for (const ClipLength& clip : lengths) held_out_ += clip.held_out;
  frames_ = histogram(lengths, [](const ClipLength& clip) { return static_cast<int64_t>(clip.mel_frames); });
  tokens_ = histogram(lengths, [](const ClipLength& clip) { return static_cast<int64_t>(clip.tokens); });
}

std::vector<std::string> PrepareReport::lines() const {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}: {} accepted, {} rejected, {:.2f} hours", where_,
                              counted(corpus_.index.size(), "clip"), summary_.rejected.size(), summary_.hours()));
  for (const auto& [format, count] : summary_.formats) lines.push_back(fmt::format("  {} × {}", count, format));
  for (const auto& [rate, count] : summary_.sample_rates) {
    const bool same = rate == fmt::format("{}", corpus_.mel.sample_rate);
    lines.push_back(fmt::format("  {} × {} Hz{}", count, rate,
                                same ? "" : fmt::format(", resampled to {} Hz", corpus_.mel.sample_rate)));
  }
  for (const RejectedClip& clip : summary_.rejected) {
    lines.push_back(
        fmt::format("  rejected: line {}, {}: {}", clip.line, clip.id.empty() ? "(no id)" : clip.id, clip.reason));
  }
  for (const RejectedClip& clip : summary_.truncated) {
    lines.push_back(fmt::format("  truncated: line {}, {}: {}", clip.line, clip.id, clip.reason));
  }
  if (corpus_.index.size() == 0) return lines;
  lines.push_back(fmt::format("  {} held out for validation, {}, {}", held_out_,
                              counted(summary_.speakers.size(), "speaker"),
                              counted(summary_.symbols.size(), "symbol")));
  if (summary_.speaker_times.size() > 1) add_speakers(lines);
  lines.push_back(fmt::format("  log-mel mean {:.3f}, std {:.3f} (of {} clips)", summary_.mel_mean, summary_.mel_std,
                              summary_.mel_measured_clips));
  lines.emplace_back();
  lines.push_back(fmt::format("mel frames ({})", corpus_.mel.name));
  for (const auto& [from, count] : frames_) {
    lines.push_back(fmt::format("  {:>6}+ {:>6}  {}", from, count, bar(count, largest_of(frames_), 40)));
  }
  lines.insert(lines.end(), {"", "static shapes     batch × mel frames   text   clips"});
  for (const Shape& shape : plan_.shapes) {
    lines.push_back(fmt::format("                  {:>5} × {:<10} {:>6}  {:>6}", shape.batch_size, shape.mel_frames,
                                shape.text_length, shape.clips.size()));
  }
  lines.push_back(fmt::format("padding {:.1f} % of all frames (one fixed shape: {:.1f} %)", 100 * plan_.padding,
                              100 * padding_of_one_shape_));
  add_advice(lines);
  return lines;
}

void PrepareReport::add_advice(std::vector<std::string>& lines) const {
  if (!advice_.empty()) lines.insert(lines.end(), {"", "advice"});
  for (const Advice& advice : advice_) {
    lines.push_back(fmt::format("  {}: {}", how_many(advice), advice.way_out));
    constexpr size_t listed = 5;
    if (advice.clips.empty()) continue;
    const auto first = std::span(advice.clips).first(std::min(advice.clips.size(), listed));
    lines.push_back(fmt::format("    {}{}", fmt::join(first, ", "),
                                advice.clips.size() > listed
                                    ? fmt::format(" and {} more; --json lists all", advice.clips.size() - listed)
                                    : ""));
  }
}

std::vector<SpeakerTime> PrepareReport::longest_first() const {
  std::vector<SpeakerTime> times = summary_.speaker_times;
  std::ranges::stable_sort(times, std::greater(), &SpeakerTime::seconds);
  return times;
}

void PrepareReport::add_speakers(std::vector<std::string>& lines) const {
  std::map<std::string, double> languages;
  for (const SpeakerTime& time : summary_.speaker_times) {
    languages[summary_.languages[time.labels.language]] += time.seconds;
  }
  for (const auto& [language, seconds] : languages)
    lines.push_back(fmt::format("  {:8.1f} min in {}", seconds / 60, language));
  constexpr size_t listed = 20;
  const std::vector<SpeakerTime> times = longest_first();
  for (const SpeakerTime& time : std::span(times).first(std::min(times.size(), listed))) {
    lines.push_back(fmt::format("  {:8.1f} min by {} in {}", time.seconds / 60,
                                speaker_name(summary_, time.labels.speaker), summary_.languages[time.labels.language]));
  }
  if (times.size() > listed) lines.push_back(fmt::format("  and {} more; --json lists all", times.size() - listed));
}

std::string PrepareReport::to_json() const {
  Json json;
  json["clips"] = corpus_.index.size() + summary_.rejected.size();
  json["hours"] = summary_.hours();
  json["accepted"] = corpus_.index.size();
  json["rejected"] = json_of(summary_.rejected);
  json["truncated"] = json_of(summary_.truncated);
  json["held_out"] = held_out_;
  json["sample_rates"] = summary_.sample_rates;
  json["formats"] = summary_.formats;
  json["speakers"] = Json::array();
  json["languages"] = Json::object();
  for (const SpeakerTime& time : longest_first()) {
    const std::string& language = summary_.languages[time.labels.language];
    json["speakers"].push_back({{"speaker", summary_.speakers[time.labels.speaker]},
                                {"language", language},
                                {"clips", time.clips},
                                {"minutes", time.seconds / 60}});
    json["languages"][language] = json["languages"].value(language, 0.0) + time.seconds / 60;
  }
  json["symbols"] = summary_.symbols;
  json["mel_mean"] = summary_.mel_mean;
  json["mel_std"] = summary_.mel_std;
  json["text_lengths"] = json_of(tokens_);
  json["mel_frames"] = json_of(frames_);
  json["shapes"] = Json::array();
  for (const Shape& shape : plan_.shapes) {
    json["shapes"].push_back({{"batch_size", shape.batch_size},
                              {"text", shape.text_length},
                              {"mel", shape.mel_frames},
                              {"clips", shape.clips.size()}});
  }
  json["padding"] = plan_.padding;
  json["padding_of_one_shape"] = padding_of_one_shape_;
  json["advice"] = Json::array();
  for (const Advice& advice : advice_) {
    json["advice"].push_back({{"code", advice.code},
                              {"finding", advice.finding},
                              {"way_out", advice.way_out},
                              {"examined", advice.examined},
                              {"clips", advice.clips}});
  }
  json["index"] = corpus_.index.path().string();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string PrepareReport::to_html() const {
  HtmlPage page(where_);
  page.paragraph(
      fmt::format("{} accepted, {} rejected, {:.2f} hours. Padding {:.1f} % of all frames in {}; one fixed "
                  "shape would pad {:.1f} %.",
                  counted(corpus_.index.size(), "clip"), summary_.rejected.size(), summary_.hours(),
                  100 * plan_.padding, counted(plan_.shapes.size(), "static shape"), 100 * padding_of_one_shape_));
  page.chart(chart_of("Lengths of the clips", "mel frames", frames_));
  page.chart(chart_of("Lengths of the texts", "tokens", tokens_));
  std::vector<TableRow> shapes;
  for (const Shape& shape : plan_.shapes) {
    shapes.push_back({fmt::format("{}", shape.batch_size), fmt::format("{}", shape.mel_frames),
                      fmt::format("{}", shape.text_length), fmt::format("{}", shape.clips.size())});
  }
  if (summary_.speaker_times.size() > 1) {
    std::vector<TableRow> speakers;
    for (const SpeakerTime& time : longest_first()) {
      speakers.push_back({speaker_name(summary_, time.labels.speaker), summary_.languages[time.labels.language],
                          fmt::format("{}", time.clips), fmt::format("{:.1f}", time.seconds / 60)});
    }
    page.section("Speakers");
    page.table({"speaker", "language", "clips", "minutes"}, speakers);
  }
  if (!advice_.empty()) {
    std::vector<TableRow> rows;
    for (const Advice& advice : advice_) {
      rows.push_back({how_many(advice), advice.way_out, fmt::format("{}", fmt::join(advice.clips, ", "))});
    }
    page.section("Advice");
    page.table({"what", "what to do", "clips"}, rows);
  }
  page.section("Static shapes");
  page.table({"batch", "mel frames", "text", "clips"}, shapes);
  add_table(page, "Rejected", summary_.rejected);
  add_table(page, "Truncated", summary_.truncated);
  return std::move(page).finish();
}

}  // namespace myxtts
