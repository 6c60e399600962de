// The page at `/`, embedded when the program is built.
#pragma once

#include <string>
#include <string_view>

namespace myxtts {

std::string_view serve_page();  // with {{nonce}} where its style and script name theirs

struct ServedPage {
  std::string html, content_security_policy;
};

// With a nonce of its own, so that nothing but the page's own script runs in it. Throws Error without random numbers.
ServedPage page_with_nonce();

}  // namespace myxtts
