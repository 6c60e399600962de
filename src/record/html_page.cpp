#include "record/html_page.h"

#include <cstdint>

namespace myxtts {
namespace {

constexpr const char* style = R"(
:root { color-scheme: light dark; --line-1: #2563c9; --line-2: #c2410c; --line-3: #15803d; --line-4: #7e3fb5;
  --line-5: #a16207; --line-6: #0e7490; --paper: #ffffff; --ink: #1b1f24; --edge: #d5d9e0; }
@media (prefers-color-scheme: dark) { :root { --line-1: #7db1ff; --line-2: #ff9a66; --line-3: #6fd08c; --line-4: #cfa3f5;
  --line-5: #e3c04f; --line-6: #6cd3e6; --paper: #14171c; --ink: #e7eaf0; --edge: #3a404b; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 54rem; margin: 2rem auto; padding: 0 1rem;
  background: var(--paper); color: var(--ink); }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { padding: .2rem 1rem .2rem 0; text-align: start; vertical-align: top; border-bottom: 1px solid var(--edge); }
svg { width: 100%; height: auto; }
img { max-width: 100%; image-rendering: pixelated; }
audio { width: 100%; }
figure { margin: 1.5rem 0; }
figcaption { font-weight: 600; }
)";

std::string base64(std::string_view bytes) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = 0;
    for (size_t i = 0; i < 3; ++i) {
      three = three << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) out += at + i <= bytes.size() ? digits[three >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

HtmlPage::HtmlPage(std::string_view title) {
  html_ = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}</title><style>{1}</style></head>\n<body><main><h1 "
      "dir=\"auto\">{0}</h1>\n",
      escape_html(title), style);
}

void HtmlPage::section(std::string_view title) { html_ += fmt::format("<h2>{}</h2>\n", escape_html(title)); }

void HtmlPage::paragraph(std::string_view text) { html_ += fmt::format("<p dir=\"auto\">{}</p>\n", escape_html(text)); }

void HtmlPage::chart(std::string_view svg) { html_ += fmt::format("<figure>{}</figure>\n", svg); }

void HtmlPage::picture(std::string_view title, std::string_view png) {
  html_ += fmt::format(
      "<figure><figcaption dir=\"auto\">{0}</figcaption><img alt=\"{0}\" src=\"data:image/png;base64,{1}\"></figure>\n",
      escape_html(title), base64(png));
}

void HtmlPage::sound(std::string_view title, std::string_view wav) {
  html_ += fmt::format(
      "<figure><figcaption dir=\"auto\">{0}</figcaption><audio controls aria-label=\"{0}\" "
      "src=\"data:audio/wav;base64,{1}\"></audio></figure>\n",
      escape_html(title), base64(wav));
}

void HtmlPage::table(const TableRow& head, std::span<const TableRow> rows) {
  html_ += "<table><tr>";
  for (const std::string& cell : head) html_ += fmt::format("<th scope=\"col\">{}</th>", escape_html(cell));
  html_ += "</tr>\n";
  for (const TableRow& row : rows) {
    html_ += "<tr>";
    for (const std::string& cell : row) html_ += fmt::format("<td dir=\"auto\">{}</td>", escape_html(cell));
    html_ += "</tr>\n";
  }
  html_ += "</table>\n";
}

std::string HtmlPage::finish() && { return std::move(html_) + "</main></body></html>\n"; }

}  // namespace myxtts
