#include "cli/prepare_report.h"

#include "base/counted.h"

#include <algorithm>

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
    list.push_back({{"id", clip.id}, {"path", clip.path}, {"line", clip.line}, {"reason", clip.reason}});
  }
  return list;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string svg_histogram(const std::string& title, const std::map<int64_t, int64_t>& counts) {
  constexpr int width = 720, height = 220, foot = 24;
  const double step = static_cast<double>(width) / static_cast<double>(std::max<size_t>(counts.size(), 1));
  std::string svg =
      fmt::format("<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
                  title, width, height + foot, title);
  size_t i = 0;
  for (const auto& [from, count] : counts) {
    const double tall = static_cast<double>(count) * (height - 16) / static_cast<double>(largest_of(counts));
    const double left = static_cast<double>(i++) * step;
    svg +=
        fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}+: {}</title></rect>",
                    left + 2, height - tall, step - 4, tall, from, count);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", left + step / 2, height - tall - 4, count);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>", left + step / 2, height + 16, from);
  }
  return svg + "</svg></figure>";
}

std::string html_table(const std::string& title, const std::vector<RejectedClip>& clips) {
  if (clips.empty()) return "";
  std::string html =
      fmt::format("<h2>{} ({})</h2><table><tr><th>line</th><th>id</th><th>why</th></tr>", title, clips.size());
  for (const RejectedClip& clip : clips) {
    html += fmt::format("<tr><td>{}</td><td dir=\"auto\">{}</td><td dir=\"auto\">{}</td></tr>", clip.line,
                        escaped(clip.id), escaped(clip.reason));
  }
  return html + "</table>";
}

constexpr const char* style =
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 "
    "1rem}table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:start;vertical-align:top}"
    "svg{width:100%;height:auto}rect{fill:#3b7dd8}text{font-size:12px;text-anchor:middle;fill:currentColor}"
    "figure{margin:1.5rem 0}figcaption{font-weight:600}";

}  // namespace

PrepareReport::PrepareReport(const std::string& where, const Corpus& corpus, const DataConfig& data)
    : where_(where), corpus_(corpus), summary_(corpus.index.summary()) {
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

void PrepareReport::print(const Console& console) const {
  console.info("{}: {} accepted, {} rejected, {:.2f} hours", where_, counted(corpus_.index.size(), "clip"),
               summary_.rejected.size(), summary_.seconds / 3600);
  for (const auto& [format, count] : summary_.formats) console.info("  {} × {}", count, format);
  for (const auto& [rate, count] : summary_.sample_rates) {
    const bool same = rate == fmt::format("{}", corpus_.mel.sample_rate);
    console.info("  {} × {} Hz{}", count, rate,
                 same ? "" : fmt::format(", resampled to {} Hz", corpus_.mel.sample_rate));
  }
  for (const RejectedClip& clip : summary_.rejected) {
    console.info("  rejected: line {}, {}: {}", clip.line, clip.id.empty() ? "(no id)" : clip.id, clip.reason);
  }
  for (const RejectedClip& clip : summary_.truncated) {
    console.info("  truncated: line {}, {}: {}", clip.line, clip.id, clip.reason);
  }
  if (corpus_.index.size() == 0) return;
  console.info("  {} held out for validation, {}, {}", held_out_,
               counted(std::max<size_t>(1, summary_.speakers.size()), "speaker"),
               counted(summary_.symbols.size(), "symbol"));
  console.info("  log-mel mean {:.3f}, standard deviation {:.3f} (of {} clips)", summary_.mel_mean, summary_.mel_std,
               summary_.mel_measured_clips);
  console.info("\nmel frames ({})", corpus_.mel.name);
  for (const auto& [from, count] : frames_) {
    console.info("  {:>6}+ {:>6}  {}", from, count, bar(count, largest_of(frames_), 40));
  }
  console.info("\nstatic shapes     batch × mel frames   text   clips");
  for (const Shape& shape : plan_.shapes) {
    console.info("                  {:>5} × {:<10} {:>6}  {:>6}", shape.batch_size, shape.mel_frames, shape.text_length,
                 shape.clips.size());
  }
  console.info("padding {:.1f} % of all frames (one fixed shape: {:.1f} %)", 100 * plan_.padding,
               100 * padding_of_one_shape_);
}

std::string PrepareReport::to_json() const {
  Json json;
  json["clips"] = corpus_.index.size() + summary_.rejected.size();
  json["hours"] = summary_.seconds / 3600;
  json["accepted"] = corpus_.index.size();
  json["rejected"] = json_of(summary_.rejected);
  json["truncated"] = json_of(summary_.truncated);
  json["held_out"] = held_out_;
  json["sample_rates"] = summary_.sample_rates;
  json["formats"] = summary_.formats;
  json["speakers"] = summary_.speakers;
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
  json["index"] = corpus_.index.path().string();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string PrepareReport::to_html() const {
  const std::string name = escaped(where_);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}</style></head><body><main><h1>{0}</h1>"
      "<p>{2} accepted, {3} rejected, {4:.2f} hours. Padding {5:.1f} % of all frames in {6}; one "
      "fixed "
      "shape would pad {7:.1f} %.</p>",
      name, style, counted(corpus_.index.size(), "clip"), summary_.rejected.size(), summary_.seconds / 3600,
      100 * plan_.padding, counted(plan_.shapes.size(), "static shape"), 100 * padding_of_one_shape_);
  html += svg_histogram("mel frames a clip", frames_) + svg_histogram("tokens a clip", tokens_);
  html += "<h2>Static shapes</h2><table><tr><th>batch</th><th>mel frames</th><th>text</th><th>clips</th></tr>";
  for (const Shape& shape : plan_.shapes) {
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", shape.batch_size, shape.mel_frames,
                        shape.text_length, shape.clips.size());
  }
  html += "</table>" + html_table("Rejected", summary_.rejected) + html_table("Truncated", summary_.truncated);
  return html + "</main></body></html>\n";
}

}  // namespace myxtts
