// Names of this machine itself. Pure functions; any thread.
#pragma once

#include <string_view>

namespace myxtts {

// localhost, an address of 127.0.0.0/8, or ::1. Never a name that a name server may give any address.
bool is_loopback(std::string_view host);

// The host of a header Host: without its port, and without the brackets of IPv6.
std::string_view host_of(std::string_view header);

}  // namespace myxtts
