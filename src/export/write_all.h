#pragma once

#include <string_view>

namespace flopledger {

/// Writes all of `text`, in one write(2) unless the system takes less at a time. Returns 0 or the
/// errno of what stopped it (ENOSPC if the system took nothing and gave no reason).
int WriteAll(int fd, std::string_view text) noexcept;

}  // namespace flopledger
