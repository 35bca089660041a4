# Finds libevent: the distribution ships pkg-config files but no CMake package.
# Defines Libevent::core, Libevent::extra (HTTP) and Libevent::pthreads.
find_path(Libevent_INCLUDE_DIR event2/http.h)
set(Libevent_REQUIRED_VARIABLES Libevent_INCLUDE_DIR)
foreach(component IN LISTS Libevent_FIND_COMPONENTS)
  find_library(Libevent_${component}_LIBRARY event_${component})
  list(APPEND Libevent_REQUIRED_VARIABLES Libevent_${component}_LIBRARY)
  mark_as_advanced(Libevent_${component}_LIBRARY)
endforeach()
mark_as_advanced(Libevent_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libevent REQUIRED_VARS ${Libevent_REQUIRED_VARIABLES})
if(Libevent_FOUND)
  foreach(component IN LISTS Libevent_FIND_COMPONENTS)
    if(NOT TARGET Libevent::${component})
      add_library(Libevent::${component} UNKNOWN IMPORTED)
      set_target_properties(Libevent::${component} PROPERTIES
        IMPORTED_LOCATION "${Libevent_${component}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${Libevent_INCLUDE_DIR}")
    endif()
  endforeach()
endif()
