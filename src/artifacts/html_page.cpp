#include "artifacts/html_page.h"

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
h1 { font-size: 1.6rem; line-height: 1.25; margin-bottom: .5rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
.verdict { font-size: 1.2rem; line-height: 1.45; padding: .9rem 1.1rem; border-radius: .5rem; margin: 1rem 0 1.2rem;
  border-inline-start: .35rem solid var(--tone); background: color-mix(in srgb, var(--tone) 9%, var(--paper)); }
.verdict strong { display: block; font-size: .85rem; letter-spacing: .03em; color: var(--tone); }
.good { --tone: var(--line-3); } .bad { --tone: var(--line-2); } .unclear { --tone: var(--line-5); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem; margin: 1.2rem 0; }
.figures div { border: 1px solid var(--edge); border-radius: .5rem; padding: .6rem .8rem; }
.figures dt { font-size: .85rem; } .figures dd { margin: 0; font-size: 1.45rem; font-weight: 600;
  font-variant-numeric: tabular-nums; } .figures dd + dd { font-size: .8rem; font-weight: 400; }
.scroll { overflow-x: auto; } .scroll:focus-visible, a:focus-visible { outline: 3px solid var(--line-1);
  outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; } caption { text-align: start; padding-bottom: .4rem; font-size: .9rem; }
.mark { display: inline-block; padding: 0 .55rem; border-radius: 1rem; font-size: .85rem; font-weight: 600;
  color: var(--tone); border: 1px solid var(--tone); }
td, th { padding: .35rem 1rem .35rem 0; text-align: start; vertical-align: top; border-bottom: 1px solid var(--edge); }
tbody th { font-weight: 500; white-space: nowrap; }
svg { width: 100%; height: auto; display: block; }
img { max-width: 100%; image-rendering: pixelated; }
audio { width: 100%; }
figure { margin: 1.5rem 0; }
figcaption { font-weight: 600; }
)";

std::string cell_html(const std::string& text, bool names_row) {
  const char* const tone = text == "ok"          ? "good"
                           : text == "attention" ? "bad"
                           : text == "unknown"   ? "unclear"
                                                 : nullptr;
  if (tone != nullptr) return fmt::format("<td><span class=\"mark {}\">{}</span></td>", tone, text);
  const char* const kind = names_row ? "th scope=\"row\"" : "td";
  return fmt::format("<{} dir=\"auto\">{}</{}>", kind, escape_html(text), names_row ? "th" : "td");
}

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

void HtmlPage::verdict(bool good, std::string_view word, std::string_view sentence) {
  html_ += fmt::format("<p class=\"verdict {}\" id=\"verdict\"><strong>{}</strong> <span dir=\"auto\">{}</span></p>\n",
                       good ? "good" : "bad", escape_html(word), escape_html(sentence));
}

void HtmlPage::list(std::span<const std::string> items) {
  html_ += "<ul>";
  for (const std::string& item : items) html_ += fmt::format("<li dir=\"auto\">{}</li>", escape_html(item));
  html_ += "</ul>\n";
}

void HtmlPage::metrics(std::span<const PageMetric> metrics) {
  html_ += "<dl class=\"figures\">";
  for (const PageMetric& one : metrics) {
    html_ += fmt::format("<div><dt>{}</dt><dd>{}</dd><dd>{}</dd></div>", escape_html(one.label), escape_html(one.value),
                         escape_html(one.note));
  }
  html_ += "</dl>\n";
}

void HtmlPage::table(const TableRow& head, std::span<const TableRow> rows, std::string_view caption) {
  // Wide tables scroll, also with the keyboard.
  html_ += fmt::format("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table>",
                       escape_html(caption.empty() ? "table" : caption));
  if (!caption.empty()) html_ += fmt::format("<caption>{}</caption>", escape_html(caption));
  html_ += "<thead><tr>";
  for (const std::string& cell : head) html_ += fmt::format("<th scope=\"col\">{}</th>", escape_html(cell));
  html_ += "</tr></thead><tbody>\n";
  for (const TableRow& row : rows) {
    html_ += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) html_ += cell_html(row[i], i == 0);
    html_ += "</tr>\n";
  }
  html_ += "</tbody></table></div>\n";
}

std::string HtmlPage::finish() && { return std::move(html_) + "</main></body></html>\n"; }

}  // namespace myxtts
