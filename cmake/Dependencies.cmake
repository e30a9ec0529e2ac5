# Where every third-party library comes from: Debian's packages, or the wheels in TROUPE_PYTHON_ENVIRONMENT.
# Each becomes one imported target with SYSTEM includes.
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
if(TROUPE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

file(GLOB TROUPE_SITE_PACKAGES LIST_DIRECTORIES true "${TROUPE_PYTHON_ENVIRONMENT}/lib/python3.*/site-packages")
if(NOT TROUPE_SITE_PACKAGES)
  message(FATAL_ERROR "No wheels under ${TROUPE_PYTHON_ENVIRONMENT}: run './troupe setup' first, "
                      "or set TROUPE_PYTHON_ENVIRONMENT")
endif()
list(GET TROUPE_SITE_PACKAGES 0 TROUPE_SITE_PACKAGES)

# MuJoCo, from its wheel.
file(GLOB mujoco_library "${TROUPE_SITE_PACKAGES}/mujoco/libmujoco.so.*")
if(NOT mujoco_library)
  message(FATAL_ERROR "No libmujoco.so in ${TROUPE_SITE_PACKAGES}/mujoco: run './troupe setup'")
endif()
list(GET mujoco_library 0 mujoco_library)
add_library(mujoco::mujoco SHARED IMPORTED)
set_target_properties(mujoco::mujoco PROPERTIES IMPORTED_LOCATION "${mujoco_library}"
  INTERFACE_INCLUDE_DIRECTORIES "${TROUPE_SITE_PACKAGES}/mujoco/include")

# LibTorch's CPU library, from the torch wheel: never libtorch.so, which pulls in CUDA.
if("models" IN_LIST TROUPE_COMPONENTS OR "learners" IN_LIST TROUPE_COMPONENTS)
  set(torch_root "${TROUPE_SITE_PACKAGES}/torch")
  if(NOT EXISTS "${torch_root}/lib/libtorch_cpu.so")
    message(FATAL_ERROR "No libtorch_cpu.so in ${torch_root}/lib: run './troupe setup'")
  endif()
  add_library(torch_c10 SHARED IMPORTED)
  set_target_properties(torch_c10 PROPERTIES IMPORTED_LOCATION "${torch_root}/lib/libc10.so")
  add_library(torch::cpu SHARED IMPORTED)
  set_target_properties(torch::cpu PROPERTIES IMPORTED_LOCATION "${torch_root}/lib/libtorch_cpu.so"
    INTERFACE_INCLUDE_DIRECTORIES "${torch_root}/include;${torch_root}/include/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES torch_c10
    INTERFACE_LINK_OPTIONS "-Wl,-rpath-link,${TROUPE_SITE_PACKAGES}/nvidia/cu13/lib")
endif()

if("actors" IN_LIST TROUPE_COMPONENTS)
  # CAF 0.17 ships no CMake file.
  find_path(CAF_INCLUDE_DIR caf/actor_system.hpp REQUIRED)
  find_library(CAF_CORE_LIBRARY caf_core REQUIRED)
  find_library(CAF_IO_LIBRARY caf_io REQUIRED)
  add_library(caf::caf INTERFACE IMPORTED)
  target_include_directories(caf::caf SYSTEM INTERFACE ${CAF_INCLUDE_DIR})
  target_link_libraries(caf::caf INTERFACE ${CAF_IO_LIBRARY} ${CAF_CORE_LIBRARY} Threads::Threads)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
  find_package(OpenSSL 3 REQUIRED)
  find_package(yaml-cpp REQUIRED)
  find_package(spdlog REQUIRED)
  find_package(nlohmann_json REQUIRED)
  find_package(CLI11 REQUIRED)
endif()
