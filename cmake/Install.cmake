# What a user gets: bin/troupe, lib/libtroupe_learners.so and the configs. The build folder has the
# same shape (build/bin, build/lib), so the program finds its library the same way in both.
add_custom_target(product)
if(TARGET troupe)
  set_target_properties(troupe PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  install(TARGETS troupe RUNTIME DESTINATION bin)
  add_dependencies(product troupe)
endif()
if(TARGET troupe_learners)
  set_target_properties(troupe_learners PROPERTIES
                        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
  install(TARGETS troupe_learners LIBRARY DESTINATION lib)
  add_dependencies(product troupe_learners)
endif()
install(DIRECTORY configs/ DESTINATION share/troupe/configs)
