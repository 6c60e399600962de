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

class HtmlPage {
 public:
  explicit HtmlPage(std::string_view title);

  void section(std::string_view title);
  void paragraph(std::string_view text);
  void chart(std::string_view svg);  // as it is
  void picture(std::string_view title, std::string_view png);
  void sound(std::string_view title, std::string_view wav);
  void table(const TableRow& head, std::span<const TableRow> rows);

  std::string finish() &&;

 private:
  std::string html_;
};

}  // namespace myxtts
