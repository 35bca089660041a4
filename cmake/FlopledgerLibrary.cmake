# libflopledger.so: the layers as one library, with nothing but FLOPLEDGER_EXPORT symbols going out.
# A process has one state whichever way it came in (Python module, C++ program, injection), so there
# is one library and everything else links it.
set(flopledger_layers base flops collect timeline ledger export session)
foreach(optional IN ITEMS collect_cupti collect_nvtx)
  if(TARGET flopledger_${optional})
    list(APPEND flopledger_layers ${optional})
  endif()
endforeach()

add_library(flopledger SHARED "${PROJECT_SOURCE_DIR}/cmake/flopledger.map")
add_library(flopledger::flopledger ALIAS flopledger)
set_target_properties(flopledger PROPERTIES
  LINKER_LANGUAGE CXX
  LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/flopledger.map")
if(NOT SKBUILD)  # a wheel holds no symbolic links: there it is one file with one name
  set_target_properties(flopledger PROPERTIES
    VERSION "${PROJECT_VERSION}"
    SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
endif()
target_link_libraries(flopledger
  PUBLIC flopledger_api
  PRIVATE $<BUILD_INTERFACE:flopledger_build_flags>)
foreach(layer IN LISTS flopledger_layers)
  target_link_libraries(flopledger PRIVATE
    "$<BUILD_INTERFACE:$<LINK_LIBRARY:WHOLE_ARCHIVE,flopledger_${layer}>>")
endforeach()
# Hidden visibility does not reach the standard library's templates; the map keeps their
# instantiations in, so that no other library in the process binds to ours.
target_link_options(flopledger PRIVATE
  "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/flopledger.map")
# NVTX keeps pointers into this library, and threads of ours run in it: it is never unloaded.
target_link_options(flopledger PRIVATE "LINKER:-z,nodelete")
if(NOT FLOPLEDGER_SANITIZER AND NOT FLOPLEDGER_BUILD_FUZZERS)
  target_link_options(flopledger PRIVATE "LINKER:--no-undefined")
endif()
