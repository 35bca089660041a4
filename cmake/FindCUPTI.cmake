# Finds the CUPTI and NVTX headers, and only the headers: libcupti is opened at run time.
# They are looked for where the builder points (CUPTI_ROOT, as a CMake or environment variable: a
# CUDA toolkit, or the nvidia/cu13 folder of the wheels nvidia-cuda-cupti, nvidia-cuda-runtime,
# nvidia-cuda-crt and nvidia-nvtx), never in a toolkit that happens to lie on the machine.
set(CUPTI_NOT_FOUND_MESSAGE "set CUPTI_ROOT to a CUDA toolkit or to the wheels' nvidia/cu13 folder")
find_path(CUPTI_INCLUDE_DIR cupti.h
  HINTS "${CUPTI_ROOT}" ENV CUPTI_ROOT
  PATH_SUFFIXES include extras/CUPTI/include
  NO_DEFAULT_PATH)
mark_as_advanced(CUPTI_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUPTI REQUIRED_VARS CUPTI_INCLUDE_DIR)
if(CUPTI_FOUND AND NOT TARGET CUPTI::headers)
  add_library(CUPTI::headers INTERFACE IMPORTED)
  set_target_properties(CUPTI::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CUPTI_INCLUDE_DIR}")
endif()
