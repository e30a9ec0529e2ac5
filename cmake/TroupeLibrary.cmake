# troupe_library(NAME [SHARED] SOURCES ... LINKS ... [PRECOMPILE header]) and troupe_test(NAME SOURCES ... LINKS ...):
# the house's compile options, once.

add_library(troupe_options INTERFACE)
target_include_directories(troupe_options INTERFACE ${PROJECT_SOURCE_DIR})
# g++ 12 reports -Wrestrict falsely for "text" + std::string at -O3, and, before 12.3, -Wmaybe-uninitialized
# for its own AVX-512 headers (its bug 105593).
target_compile_options(troupe_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wno-restrict -Werror
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -fno-math-errno -ffp-contract=off)
if(TROUPE_ARCH)
  target_compile_options(troupe_options INTERFACE -march=${TROUPE_ARCH})
endif()
if(TROUPE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TROUPE_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++ in a build folder of its own")
  endif()
  set(TROUPE_SANITIZE_FLAGS -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
      -fno-omit-frame-pointer -g -Wno-unknown-warning-option)
elseif(TROUPE_SANITIZE STREQUAL "address")
  # CAF's headers bind null references, so the null check stays off.
  set(TROUPE_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize=null,vptr
      -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g)
elseif(TROUPE_SANITIZE STREQUAL "thread")
  set(TROUPE_SANITIZE_FLAGS -fsanitize=thread -fno-omit-frame-pointer -g)
elseif(TROUPE_SANITIZE)
  message(FATAL_ERROR "TROUPE_SANITIZE is '${TROUPE_SANITIZE}'; it may be address, thread or empty")
endif()
if(TROUPE_SANITIZE_FLAGS)
  # Instrumented, the same AVX-512 headers of g++ 12 trip -Wuninitialized as well.
  target_compile_options(troupe_options INTERFACE ${TROUPE_SANITIZE_FLAGS}
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)
  target_link_options(troupe_options INTERFACE ${TROUPE_SANITIZE_FLAGS})
endif()

# Notes NAME and what it links, for the checks at the end (Build.cmake).
function(troupe_note name)
  set_property(GLOBAL APPEND PROPERTY TROUPE_TARGETS ${name})
  foreach(link IN LISTS ARGN)
    set_property(GLOBAL APPEND PROPERTY TROUPE_LINKS "${name}|${link}")
  endforeach()
endfunction()

function(troupe_library name)
  cmake_parse_arguments(ARG "SHARED" "PRECOMPILE" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  if(ARG_SHARED)
    add_library(${name} SHARED ${ARG_SOURCES})
  else()
    add_library(${name} STATIC ${ARG_SOURCES})
  endif()
  target_link_libraries(${name} PUBLIC troupe_options ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
  if(ARG_PRECOMPILE)
    target_precompile_headers(${name} PRIVATE ${ARG_PRECOMPILE})
  endif()
  troupe_note(${name} ${ARG_LINKS} ${ARG_PRIVATE_LINKS})
endfunction()

# One test program per tests/ folder keeps link time down; ctest sees each TEST by its own name.
function(troupe_test name)
  cmake_parse_arguments(ARG "LIKE_LIBRARY" "PRECOMPILE" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  # Tests are compiled once and run once: -O1 halves the wait. What they test keeps its own options, and so
  # does a test that shares a library's precompiled header (LIKE_LIBRARY).
  if(NOT ARG_LIKE_LIBRARY)
    target_compile_options(${name} PRIVATE -O1)
  endif()
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gmock GTest::gtest GTest::gtest_main)
  if(ARG_PRECOMPILE)
    target_precompile_headers(${name} PRIVATE ${ARG_PRECOMPILE})
  endif()
  troupe_note(${name} ${ARG_LINKS})
  set_property(GLOBAL APPEND PROPERTY TROUPE_TESTS ${name})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS "${ARG_LABELS}")
endfunction()
