// A self-contained HTML page: style, pictures and audio are embedded, nothing is loaded from elsewhere. Follows the
// light or dark theme of the system. Escapes all text. One page per thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

std::string escape_html(std::string_view text);

using TableRow = std::vector<std::string>;

struct PageMetric {
  std::string label, value, note;
};

class HtmlPage {
 public:
  explicit HtmlPage(std::string_view title);

  void section(std::string_view title);
  void paragraph(std::string_view text);
  void chart(std::string_view svg);  // inserted unescaped
  // Headline: a one-word status and the verdict.
  void verdict(bool good, std::string_view word, std::string_view sentence);
  void list(std::span<const std::string> items);
  void metrics(std::span<const PageMetric> metrics);  // large numbers side by side
  void picture(std::string_view title, std::string_view png);
  void sound(std::string_view title, std::string_view wav);
  // Styles cells with the text "ok", "attention" or "unknown".
  void table(const TableRow& head, std::span<const TableRow> rows, std::string_view caption = {});

  std::string finish() &&;

 private:
  std::string html_;
};

}  // namespace myxtts
