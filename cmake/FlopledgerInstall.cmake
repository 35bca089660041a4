# What is installed: the package for find_package(flopledger), or, when the wheel is built, what lies
# beside the Python module.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

# install_program_texts(<share> <component>): the manual and the completions of the program.
function(install_program_texts share component)
  if(NOT TARGET flopledger_program_texts)
    return()
  endif()
  set(folder "${PROJECT_BINARY_DIR}/src/cli")
  install(FILES "${folder}/flopledger.1" DESTINATION "${share}/man/man1" COMPONENT ${component})
  install(FILES "${folder}/flopledger.bash" RENAME flopledger
    DESTINATION "${share}/bash-completion/completions" COMPONENT ${component})
  install(FILES "${folder}/_flopledger" DESTINATION "${share}/zsh/site-functions"
    COMPONENT ${component})
  install(FILES "${folder}/flopledger.fish" DESTINATION "${share}/fish/vendor_completions.d"
    COMPONENT ${component})
endfunction()

if(SKBUILD)
  # The observer that is compiled on the user's machine needs the C header.
  install(TARGETS flopledger LIBRARY DESTINATION flopledger COMPONENT python)
  install(FILES "${PROJECT_SOURCE_DIR}/include/flopledger/host_ops.h"
    DESTINATION flopledger/include/flopledger COMPONENT python)
  if(TARGET flopledger_program)
    install(TARGETS flopledger_program RUNTIME DESTINATION "${SKBUILD_SCRIPTS_DIR}"
      COMPONENT python)
    install_program_texts("${SKBUILD_DATA_DIR}/share" python)
  endif()
  return()
endif()

include(CMakePackageConfigHelpers)
set(flopledger_config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/flopledger")

install(TARGETS flopledger flopledger_api EXPORT flopledgerTargets
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
  FILE_SET HEADERS COMPONENT development)
if(TARGET flopledger_program)
  install(TARGETS flopledger_program RUNTIME COMPONENT runtime)
  install_program_texts("${CMAKE_INSTALL_DATADIR}" runtime)
endif()
install(EXPORT flopledgerTargets NAMESPACE flopledger:: COMPONENT development
  DESTINATION "${flopledger_config_folder}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/flopledgerConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/flopledgerConfig.cmake"
  INSTALL_DESTINATION "${flopledger_config_folder}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/flopledgerConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/flopledgerConfig.cmake"
  "${PROJECT_BINARY_DIR}/flopledgerConfigVersion.cmake"
  DESTINATION "${flopledger_config_folder}" COMPONENT development)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)
