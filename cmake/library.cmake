# libinkstone, shared and static, and everything `cmake --install` puts down.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(INK_PRIVATE_LIBRARIES PkgConfig::JANSSON PkgConfig::JPEG PkgConfig::PNG PkgConfig::WEBP PkgConfig::TIFF
  PkgConfig::UTF8PROC OpenMP::OpenMP_C m)
set(INK_PKG_MODULES jansson libjpeg libpng libwebp libtiff-4 libutf8proc)
set(INK_SOVERSION 0)

# ---- shared: only INK_API functions are visible, and nothing of the libraries below ----
add_library(inkstone_shared SHARED $<TARGET_OBJECTS:ink_objects>)
add_library(inkstone::inkstone ALIAS inkstone_shared)
set_target_properties(inkstone_shared PROPERTIES OUTPUT_NAME inkstone VERSION ${PROJECT_VERSION} SOVERSION ${INK_SOVERSION}
  EXPORT_NAME inkstone LINKER_LANGUAGE C)
target_link_libraries(inkstone_shared PRIVATE ink_flags_link ${INK_PRIVATE_LIBRARIES})
set(INK_EXPORTS ${PROJECT_SOURCE_DIR}/cmake/exports.map) # hides what a compiler makes visible, such as OpenMP's locks
target_link_options(inkstone_shared PRIVATE LINKER:--exclude-libs,ALL LINKER:--version-script=${INK_EXPORTS})
set_target_properties(inkstone_shared PROPERTIES LINK_DEPENDS ${INK_EXPORTS})
if(NOT INK_SANITIZE) # the sanitizers' symbols come with the program
  target_link_options(inkstone_shared PRIVATE LINKER:--no-undefined)
endif()
target_include_directories(inkstone_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# ---- static: one object whose hidden symbols are local, so that no internal name can meet one of the user's ----
set(INK_WHOLE ${CMAKE_CURRENT_BINARY_DIR}/inkstone_whole.o)
add_custom_command(OUTPUT ${INK_WHOLE}
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -Wl,-d -o ${INK_WHOLE} $<TARGET_OBJECTS:ink_objects>
  COMMAND ${CMAKE_OBJCOPY} --localize-hidden --wildcard --keep-global-symbol=ink_* ${INK_WHOLE}
  DEPENDS ink_objects $<TARGET_OBJECTS:ink_objects>
  COMMAND_EXPAND_LISTS VERBATIM COMMENT "Joining the objects of libinkstone.a")
add_library(inkstone_static STATIC ${INK_WHOLE})
set_target_properties(inkstone_static PROPERTIES OUTPUT_NAME inkstone EXPORT_NAME static LINKER_LANGUAGE C)
target_link_libraries(inkstone_static INTERFACE ${INK_PRIVATE_LIBRARIES})
target_include_directories(inkstone_static INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# ---- install ----
install(TARGETS inkstone RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS inkstone_shared EXPORT inkstone-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS inkstone_static EXPORT inkstone-static-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/inkstone DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(NOT CMAKE_CROSSCOMPILING) # the manual page is made of the program's help texts
  add_custom_command(OUTPUT inkstone.1
    COMMAND sh ${PROJECT_SOURCE_DIR}/packaging/man.sh $<TARGET_FILE:inkstone> ${PROJECT_VERSION} > inkstone.1.part
    COMMAND ${CMAKE_COMMAND} -E rename inkstone.1.part inkstone.1
    DEPENDS inkstone packaging/man.sh docs/man/inkstone.1.in VERBATIM)
  add_custom_target(manual ALL DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/inkstone.1)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/inkstone.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

install(FILES completions/inkstone.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME inkstone)
install(FILES completions/_inkstone DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

# CMake package: inkstone::inkstone (shared), inkstone::static.
set(INK_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/inkstone)
install(EXPORT inkstone-targets NAMESPACE inkstone:: DESTINATION ${INK_PACKAGE_DIR})
install(EXPORT inkstone-static-targets NAMESPACE inkstone:: DESTINATION ${INK_PACKAGE_DIR})
configure_package_config_file(packaging/inkstone-config.cmake.in inkstone-config.cmake INSTALL_DESTINATION ${INK_PACKAGE_DIR})
write_basic_package_version_file(inkstone-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/inkstone-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/inkstone-config-version.cmake
  DESTINATION ${INK_PACKAGE_DIR})

# pkg-config. The prefix is found from where the file lies, so that `cmake --install --prefix` may choose it.
file(RELATIVE_PATH INK_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" INK_PC_PREFIX "${INK_PC_PREFIX}")
string(REPLACE ";" " " INK_PC_REQUIRES "${INK_PKG_MODULES}")
set(INK_PC_LIBS "-lm")
foreach(name ${OpenMP_C_LIB_NAMES})
  if(name MATCHES "^(gomp|pthread)$")
    string(APPEND INK_PC_LIBS " -l${name}")
  else()
    string(APPEND INK_PC_LIBS " ${OpenMP_${name}_LIBRARY}")
  endif()
endforeach()
configure_file(packaging/inkstone.pc.in inkstone.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/inkstone.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
