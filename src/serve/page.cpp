#include "serve/page.h"

#include "base/error.h"
#include "base/hash.h"

#include <array>

#include <sys/random.h>

namespace myxtts {

ServedPage page_with_nonce() {
  std::array<uint64_t, 2> random{};
  if (::getrandom(random.data(), sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
    fail("serve", "the system has no random numbers");
  }
  const std::string nonce = hash_hex(random[0]) + hash_hex(random[1]);
  constexpr std::string_view placeholder = "{{nonce}}";
  ServedPage page;
  std::string_view rest = serve_page();
  for (size_t at = rest.find(placeholder); at != std::string_view::npos; at = rest.find(placeholder)) {
    page.html.append(rest.substr(0, at)).append(nonce);
    rest.remove_prefix(at + placeholder.size());
  }
  page.html.append(rest);
  page.content_security_policy = fmt::format(
      "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; media-src blob:; "
      "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      nonce);
  return page;
}

}  // namespace myxtts
