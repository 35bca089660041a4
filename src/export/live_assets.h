#pragma once

#include <span>
#include <string_view>

namespace flopledger {

/// A file of the live page, compiled in from `src/export/assets`.
struct LiveAsset {
  std::string_view name;  ///< `live.html`
  std::string_view content_type;
  std::string_view content;
};

std::span<const LiveAsset> LiveAssets();

}  // namespace flopledger
