# Tests of the tree and of what is installed, beside the programs in tests/.
set(INK_CHECKS ${PROJECT_SOURCE_DIR}/tests)
add_test(NAME check_tree COMMAND bash ${INK_CHECKS}/check_tree.sh ${PROJECT_SOURCE_DIR})
add_test(NAME check_exports COMMAND bash ${INK_CHECKS}/check_exports.sh ${PROJECT_SOURCE_DIR} $<TARGET_FILE:inkstone_shared>
  $<TARGET_FILE:inkstone_static>)
find_program(INK_CLANG_FORMAT NAMES clang-format-14 clang-format)
if(INK_CLANG_FORMAT)
  add_test(NAME check_format COMMAND bash ${INK_CHECKS}/check_format.sh ${PROJECT_SOURCE_DIR} ${INK_CLANG_FORMAT})
endif()
if(NOT INK_SANITIZE AND NOT CMAKE_C_FLAGS MATCHES "--coverage") # a user's program is built without such flags
  add_test(NAME check_package COMMAND bash ${INK_CHECKS}/check_package.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
    ${CMAKE_COMMAND} ${CMAKE_C_COMPILER})
endif()
