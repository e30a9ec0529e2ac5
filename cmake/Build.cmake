# How things are built, whatever is built: known components only, ccache and lld where they are
# installed, and run paths that work both in the build folder and after 'cmake --install'.

# The components in dependency order; CMakeLists.txt adds their folders in this order.
set(TROUPE_KNOWN_COMPONENTS envs replay inference data models learners actors)
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

# The program looks for the libraries it loads in ../lib beside its own folder, in both places.
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

# ccache keeps objects that use a precompiled header of GCC only with this option.
function(troupe_cache_precompiled)
  get_property(targets GLOBAL PROPERTY TROUPE_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(header ${target} PRECOMPILE_HEADERS)
    if(header AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -fpch-preprocess)
    endif()
  endforeach()
endfunction()

# All that TARGET links, directly or through others.
function(troupe_closure target result)
  set(seen "")
  set(open ${target})
  while(open)
    list(POP_FRONT open next)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" next "${next}")
    if(next IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${next})
    if(TARGET ${next})
      get_target_property(links ${next} INTERFACE_LINK_LIBRARIES)
      if(next STREQUAL target)
        get_target_property(links ${next} LINK_LIBRARIES)
      endif()
      if(links)
        list(APPEND open ${links})
      endif()
    endif()
  endwhile()
  set(${result} ${seen} PARENT_SCOPE)
endfunction()

# The target core_tests: every test program without LibTorch that starts no built program of ours.
# Called once all folders are in; the sanitizer builds make only this.
function(troupe_add_core_tests)
  add_custom_target(core_tests)
  get_property(tests GLOBAL PROPERTY TROUPE_TESTS)
  foreach(test IN LISTS tests)
    troupe_closure(${test} links)
    get_target_property(starts ${test} MANUALLY_ADDED_DEPENDENCIES)
    if(NOT "torch::cpu" IN_LIST links AND NOT "troupe_learners" IN_LIST links
       AND NOT "${starts}" MATCHES "(^|;)(troupe|troupe_learners)(;|$)")
      add_dependencies(core_tests ${test})
    endif()
  endforeach()
endfunction()
