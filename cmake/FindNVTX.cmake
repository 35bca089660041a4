# Finds the NVTX headers (wheel nvidia-nvtx, or a CUDA toolkit): header-only, nothing is linked.
# They are looked for where the builder points (NVTX_ROOT or CUPTI_ROOT, as a CMake or environment
# variable: a CUDA toolkit, or the nvidia/cu13 folder of the wheels), never in a toolkit that happens
# to lie on the machine.
set(NVTX_NOT_FOUND_MESSAGE
  "set NVTX_ROOT or CUPTI_ROOT to a CUDA toolkit or to the wheels' nvidia/cu13 folder")
find_path(NVTX_INCLUDE_DIR nvtx3/nvToolsExt.h
  HINTS "${NVTX_ROOT}" ENV NVTX_ROOT "${CUPTI_ROOT}" ENV CUPTI_ROOT
  PATH_SUFFIXES include
  NO_DEFAULT_PATH)
mark_as_advanced(NVTX_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NVTX REQUIRED_VARS NVTX_INCLUDE_DIR)
if(NVTX_FOUND AND NOT TARGET NVTX::headers)
  add_library(NVTX::headers INTERFACE IMPORTED)
  set_target_properties(NVTX::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${NVTX_INCLUDE_DIR}")
endif()
