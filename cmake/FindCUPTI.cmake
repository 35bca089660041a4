# Finds the CUPTI headers, and only the headers: libcupti is opened at run time.
# They are looked for where the builder points (CUPTI_ROOT, as a CMake or environment variable: a
# CUDA toolkit, or the nvidia/cu13 folder of the wheels nvidia-cuda-cupti, nvidia-cuda-runtime and
# nvidia-cuda-crt), never in a toolkit that happens to lie on the machine.
#
# A part of a toolkit, or wheels of different versions, are not found; CUPTI_NOT_FOUND_MESSAGE says
# what is wrong.
set(CUPTI_NOT_FOUND_MESSAGE "set CUPTI_ROOT to a CUDA toolkit or to the wheels' nvidia/cu13 folder")
foreach(header IN ITEMS "CUPTI_INCLUDE_DIR cupti.h" "CUPTI_CUDA_INCLUDE_DIR cuda.h"
                        "CUPTI_CRT_INCLUDE_DIR crt/host_defines.h")
  separate_arguments(header)
  find_path(${header}
    HINTS "${CUPTI_ROOT}" ENV CUPTI_ROOT
    PATH_SUFFIXES include extras/CUPTI/include
    NO_DEFAULT_PATH)
endforeach()
mark_as_advanced(CUPTI_INCLUDE_DIR CUPTI_CUDA_INCLUDE_DIR CUPTI_CRT_INCLUDE_DIR)

set(CUPTI_USABLE FALSE)
if(CUPTI_INCLUDE_DIR AND NOT CUPTI_CUDA_INCLUDE_DIR)
  set(CUPTI_NOT_FOUND_MESSAGE "cupti.h is there, cuda.h is not: install nvidia-cuda-runtime too")
elseif(CUPTI_INCLUDE_DIR AND NOT CUPTI_CRT_INCLUDE_DIR)
  set(CUPTI_NOT_FOUND_MESSAGE
    "cupti.h is there, crt/host_defines.h is not: install nvidia-cuda-crt too")
elseif(CUPTI_INCLUDE_DIR)
  file(STRINGS "${CUPTI_INCLUDE_DIR}/cupti_version.h" cupti_line
    REGEX "^#define CUPTI_API_VERSION +[0-9]+")
  file(STRINGS "${CUPTI_CUDA_INCLUDE_DIR}/cuda.h" cuda_line REGEX "^#define CUDA_VERSION +[0-9]+")
  string(REGEX REPLACE "^#define [A-Z_]+ +([0-9]+).*" "\\1" CUPTI_API_VERSION "${cupti_line}")
  string(REGEX REPLACE "^#define [A-Z_]+ +([0-9]+).*" "\\1" CUPTI_CUDA_VERSION "${cuda_line}")
  # xxyyzz since CUDA 13.0 (130001), a running number of at most three digits before; 13000 is 13.0.
  math(EXPR cupti_release "${CUPTI_API_VERSION} / 100")
  math(EXPR cuda_release "${CUPTI_CUDA_VERSION} / 1000 * 100 + ${CUPTI_CUDA_VERSION} % 1000 / 10")
  if((CUPTI_API_VERSION GREATER_EQUAL 100000 AND NOT cupti_release EQUAL cuda_release)
     OR (CUPTI_API_VERSION LESS 100000 AND CUPTI_CUDA_VERSION GREATER_EQUAL 13000))
    set(CUPTI_NOT_FOUND_MESSAGE "cupti.h is of API version ${CUPTI_API_VERSION}, cuda.h of \
${CUPTI_CUDA_VERSION}: install headers of one CUDA release")
  else()
    # The rest of the headers has no version to compare: they fit if they compile.
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_INCLUDES
      "${CUPTI_INCLUDE_DIR}" "${CUPTI_CUDA_INCLUDE_DIR}" "${CUPTI_CRT_INCLUDE_DIR}")
    set(CMAKE_REQUIRED_QUIET TRUE)
    string(MD5 cupti_headers "${CMAKE_REQUIRED_INCLUDES};${CUPTI_API_VERSION};${CUPTI_CUDA_VERSION}")
    check_cxx_source_compiles("#include <cupti.h>\nint main() { return 0; }"
      CUPTI_COMPILES_${cupti_headers})
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_QUIET)
    if(CUPTI_COMPILES_${cupti_headers})
      set(CUPTI_USABLE TRUE)
    else()
      set(CUPTI_NOT_FOUND_MESSAGE "the headers in ${CUPTI_INCLUDE_DIR} do not compile together: \
install nvidia-cuda-cupti, nvidia-cuda-runtime and nvidia-cuda-crt of one CUDA release")
    endif()
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUPTI
  REQUIRED_VARS CUPTI_INCLUDE_DIR CUPTI_CUDA_INCLUDE_DIR CUPTI_CRT_INCLUDE_DIR CUPTI_USABLE
  REASON_FAILURE_MESSAGE "${CUPTI_NOT_FOUND_MESSAGE}")
if(CUPTI_FOUND AND NOT TARGET CUPTI::headers)
  add_library(CUPTI::headers INTERFACE IMPORTED)
  set_target_properties(CUPTI::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
    "${CUPTI_INCLUDE_DIR};${CUPTI_CUDA_INCLUDE_DIR};${CUPTI_CRT_INCLUDE_DIR}")
endif()
# The library beside the headers, for tests of what works without a driver.
find_file(FLOPLEDGER_CUPTI_LIBRARY libcupti.so.13
  HINTS "${CUPTI_INCLUDE_DIR}/.." PATH_SUFFIXES lib lib64 NO_DEFAULT_PATH)
mark_as_advanced(FLOPLEDGER_CUPTI_LIBRARY)
