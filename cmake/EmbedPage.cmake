# Writes `output`, which holds the page of the server, from `page`; run again whenever it changes.
function(embed_page page output)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
  file(READ ${page} html)
  # A string literal of C++ may not be longer than 65536 bytes everywhere, and this page is shorter.
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT [[
#include "serve/page.h"

namespace myxtts {

std::string_view serve_page() {
  static constexpr std::string_view page = R"page(@html@)page";
  return page;
}

}  // namespace myxtts
]])
endfunction()
