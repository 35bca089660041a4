# One static library per folder (layer). A layer links only what the layer table lets it include, so
# that a forbidden arrow fails at compile time as well as in tests/lint.
include(GNUInstallDirs)

add_library(flopledger_build_flags INTERFACE)
target_compile_options(flopledger_build_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  -Wno-missing-field-initializers  # fields have defaults
  $<$<BOOL:${FLOPLEDGER_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Wno-deprecated-declarations>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 105651: at -O2, "text" + std::string is taken for an overlapping copy.
  target_compile_options(flopledger_build_flags INTERFACE -Wno-restrict)
endif()
if(FLOPLEDGER_SANITIZER STREQUAL "address")
  set(sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(FLOPLEDGER_SANITIZER STREQUAL "thread")
  set(sanitizer_flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(FLOPLEDGER_SANITIZER STREQUAL "coverage")
  set(sanitizer_flags --coverage -O0)
endif()
if(FLOPLEDGER_BUILD_FUZZERS)
  # Without coverage of the libraries a fuzzer sees its own few lines and learns nothing.
  target_compile_options(flopledger_build_flags INTERFACE
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(flopledger_build_flags INTERFACE -fsanitize=address,undefined)
endif()
if(sanitizer_flags)
  target_compile_options(flopledger_build_flags INTERFACE ${sanitizer_flags})
  target_link_options(flopledger_build_flags INTERFACE ${sanitizer_flags})
endif()

# flopledger_add_layer(<name> SOURCES ... [LINKS ...])
function(flopledger_add_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(flopledger_${name} STATIC ${ARG_SOURCES})
  target_include_directories(flopledger_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>")
  target_link_libraries(flopledger_${name} PUBLIC flopledger_api ${ARG_LINKS}
    PRIVATE $<BUILD_INTERFACE:flopledger_build_flags>)
  target_compile_options(flopledger_${name} PRIVATE -Wconversion -Wno-sign-conversion)
endfunction()
