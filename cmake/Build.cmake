# How things are built, whatever is built: known components only, ccache and lld where they are
# installed, and run paths that work both in the build folder and after 'cmake --install'.

# The components in dependency order; CMakeLists.txt adds their folders in this order.
set(TROUPE_KNOWN_COMPONENTS envs replay inference models learners actors)
foreach(component IN LISTS TROUPE_COMPONENTS)
  if(NOT component IN_LIST TROUPE_KNOWN_COMPONENTS)
    list(JOIN TROUPE_KNOWN_COMPONENTS ", " known)
    message(FATAL_ERROR "TROUPE_COMPONENTS names '${component}'; known components are ${known}")
  endif()
endforeach()

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE AND (NOT CMAKE_CXX_COMPILER_LAUNCHER OR CMAKE_CXX_COMPILER_LAUNCHER STREQUAL "ccache"))
  # Without this sloppiness ccache refuses files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros "${TROUPE_CCACHE}")
endif()

find_program(TROUPE_LLD ld.lld)
if(TROUPE_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# The program looks for the learning library in ../lib beside its own folder, in both places.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# Called once all folders are in: a library that links another one whose component was left out of
# TROUPE_COMPONENTS would otherwise fail only at link time, and say it badly.
function(troupe_check_components)
  get_property(links GLOBAL PROPERTY TROUPE_LINKS)
  foreach(link IN LISTS links)
    string(REPLACE "|" ";" link "${link}")
    list(GET link 0 from)
    list(GET link 1 to)
    if(to MATCHES "^troupe_" AND NOT TARGET ${to})
      message(FATAL_ERROR "${from} links ${to}, whose component is not in TROUPE_COMPONENTS "
                          "(${TROUPE_COMPONENTS})")
    endif()
  endforeach()
endfunction()
