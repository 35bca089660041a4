# cmake -P: FindCUPTI on toolkits that are not whole. Each is refused with what to install, and none
# that the builder did not point at is taken.
set(source "${WORK_FOLDER}/source")
file(REMOVE_RECURSE "${WORK_FOLDER}")
file(WRITE "${source}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)
project(seeker LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH \"${MODULE_FOLDER}\")
find_package(CUPTI QUIET)
message(STATUS \"found: \${CUPTI_FOUND}; \${CUPTI_NOT_FOUND_MESSAGE}\")
")

# expect(<case> <root> <found> <part of the message>)
function(expect case root found message)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env "CUPTI_ROOT=${root}" "${CMAKE_COMMAND}" -S "${source}"
      -B "${WORK_FOLDER}/build" --fresh -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  string(FIND "${output}" "found: ${found}; " as_expected)
  string(FIND "${output}" "${message}" said)
  if(NOT status EQUAL 0 OR as_expected EQUAL -1 OR said EQUAL -1)
    message(SEND_ERROR "${case}: wanted found: ${found} and '${message}' in\n${output}")
  endif()
endfunction()

set(root "${WORK_FOLDER}/toolkit")
set(headers "${root}/include")
expect("no folder given" "" FALSE "set CUPTI_ROOT to a CUDA toolkit")
file(WRITE "${headers}/cupti.h" "#include <cuda.h>\n")
file(WRITE "${headers}/cupti_version.h" "#define CUPTI_API_VERSION 130001\n")
expect("CUPTI alone" "${root}" FALSE "cuda.h is not: install nvidia-cuda-runtime too")
file(WRITE "${headers}/cuda.h" "#define CUDA_VERSION 13050\n#include <crt/host_defines.h>\n")
expect("no crt" "${root}" FALSE "crt/host_defines.h is not: install nvidia-cuda-crt too")
file(WRITE "${headers}/crt/host_defines.h" "#error of another release\n")
expect("two releases" "${root}" FALSE
  "cupti.h is of API version 130001, cuda.h of 13050: install headers of one CUDA release")
file(WRITE "${headers}/cuda.h" "#define CUDA_VERSION 13000\n#include <crt/host_defines.h>\n")
expect("a third release" "${root}" FALSE "do not compile together")
file(WRITE "${headers}/crt/host_defines.h" "\n")
expect("all of one release" "${root}" TRUE "")
# CUDA 12 counted its API versions; 28 is 12.9.
file(WRITE "${headers}/cupti_version.h" "#define CUPTI_API_VERSION 28\n")
expect("CUPTI 12 with CUDA 13" "${root}" FALSE "install headers of one CUDA release")

# ON is a demand: without headers the project itself says what is missing and stops.
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env --unset=CUPTI_ROOT "${CMAKE_COMMAND}" -S "${PROJECT_FOLDER}"
    -B "${WORK_FOLDER}/demand" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
    -DFLOPLEDGER_WITH_CUPTI=ON -DFLOPLEDGER_BUILD_TESTS=OFF
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
string(FIND "${output}" "FLOPLEDGER_WITH_CUPTI=ON, but no CUPTI headers: set CUPTI_ROOT" said)
if(status EQUAL 0 OR said EQUAL -1)
  message(SEND_ERROR "FLOPLEDGER_WITH_CUPTI=ON without headers: status ${status}\n${output}")
endif()
