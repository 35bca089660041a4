# cmake -DOUTPUT=... -DASSETS=a;b;c [-DHEADER=... -DSIGNATURE=...] -P embed_assets.cmake: files to one
# C++ source with their bytes, behind a function that the header declares.
if(NOT HEADER)
  set(HEADER "export/live_assets.h")
  set(SIGNATURE "std::span<const LiveAsset> LiveAssets()")
endif()
set(arrays "")
set(entries "")
set(index 0)
foreach(asset IN LISTS ASSETS)
  get_filename_component(name "${asset}" NAME)
  get_filename_component(extension "${asset}" LAST_EXT)
  if(extension STREQUAL ".html")
    set(type "text/html; charset=utf-8")
  elseif(extension STREQUAL ".css")
    set(type "text/css; charset=utf-8")
  elseif(extension STREQUAL ".js")
    set(type "text/javascript; charset=utf-8")
  elseif(extension STREQUAL ".svg")
    set(type "image/svg+xml")
  elseif(extension STREQUAL ".json")
    set(type "application/json")
  elseif(extension STREQUAL ".yml")
    set(type "application/yaml")
  else()
    message(FATAL_ERROR "${name}: no content type for '${extension}'")
  endif()
  file(READ "${asset}" hex HEX)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)"
    "\\1\n" bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kAsset${index}[] = {\n${bytes}};\n")
  string(APPEND entries
    "    {\"${name}\", \"${type}\", {reinterpret_cast<const char*>(kAsset${index}), ${size}}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE "${OUTPUT}" "// Made by embed_assets.cmake.
#include \"${HEADER}\"

namespace flopledger {
namespace {
${arrays}}  // namespace

${SIGNATURE} {
  static const LiveAsset kAssets[] = {
${entries}  };
  return kAssets;
}

}  // namespace flopledger
")
