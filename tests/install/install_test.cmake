# Runs as a script: install, configure the consumer against it, build it, run it.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(prefix "${WORK_FOLDER}/prefix")
set(build "${WORK_FOLDER}/build")
file(REMOVE_RECURSE "${WORK_FOLDER}")

run("${CMAKE_COMMAND}" --install "${BUILD_FOLDER}" --prefix "${prefix}")
foreach(name IN ITEMS LICENSE)
  file(GLOB_RECURSE found "${prefix}/share/doc/*/${name}")
  if(NOT found)
    message(FATAL_ERROR "${name} was not installed")
  endif()
endforeach()
file(GLOB_RECURSE stray "${prefix}/*.a")
if(stray)
  message(FATAL_ERROR "inner libraries were installed: ${stray}")
endif()

# The manual and the completions are of the program that lies beside them.
if(EXISTS "${BUILD_FOLDER}/src/cli/flopledger.1")
  foreach(file IN ITEMS man/man1/flopledger.1 bash-completion/completions/flopledger
      zsh/site-functions/_flopledger fish/vendor_completions.d/flopledger.fish)
    file(READ "${prefix}/share/${file}" content)
    if(NOT content MATCHES "doctor")
      message(FATAL_ERROR "share/${file} does not know the program's commands")
    endif()
  endforeach()
endif()

# An installation is used where it lies now, not where it was made.
file(RENAME "${prefix}" "${WORK_FOLDER}/moved")
run("${CMAKE_COMMAND}" -S "${CONSUMER_FOLDER}" -B "${build}" -G "${GENERATOR}"
  "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
  "-DCMAKE_PREFIX_PATH=${WORK_FOLDER}/moved"
  "-DEXAMPLES_FOLDER=${EXAMPLES_FOLDER}"
  "-DWANTED_VERSION=${VERSION}")
run("${CMAKE_COMMAND}" --build "${build}")
run("${build}/consumer")
if(NOT output STREQUAL "flopledger ${VERSION}\n170141183460469231731687303715884105727\n")
  message(FATAL_ERROR "the consumer printed:\n${output}")
endif()

# Two products of 256 x 128 x 64 a step, two FLOPs a multiply-add.
run("${build}/session" 3 "50 GFLOP/s")
foreach(wanted IN ITEMS "flopledger/step  +2\n" "flopledger/useful_flops  +8388608\n" "flopledger/mfu  ")
  if(NOT output MATCHES "${wanted}")
    message(FATAL_ERROR "the example printed no '${wanted}':\n${output}")
  endif()
endforeach()
run("${build}/session" 3)
if(output MATCHES "flopledger/mfu  ")
  message(FATAL_ERROR "MFU without a peak:\n${output}")
endif()
