// One page in one file: style, pictures and sounds are inside it, and nothing is loaded from elsewhere. Light or dark
// as the reader's system is. What is given as text is escaped. Any thread, one page by one thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace myxtts {

std::string escape_html(std::string_view text);

using TableRow = std::vector<std::string>;

struct PageFigure {
  std::string label, value, note;
};

class HtmlPage {
 public:
  explicit HtmlPage(std::string_view title);

  void section(std::string_view title);
  void paragraph(std::string_view text);
  void chart(std::string_view svg);  // as it is
  // The one sentence that the page is about, with a word that says whether it is good news.
  void verdict(bool good, std::string_view word, std::string_view sentence);
  void list(std::span<const std::string> items);
  void figures(std::span<const PageFigure> figures);  // side by side, large
  void picture(std::string_view title, std::string_view png);
  void sound(std::string_view title, std::string_view wav);
  // Cells of the words "ok", "attention" and "unknown" are marked as such.
  void table(const TableRow& head, std::span<const TableRow> rows, std::string_view caption = {});

  std::string finish() &&;

 private:
  std::string html_;
};

}  // namespace myxtts
