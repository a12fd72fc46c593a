# Libraries from outside. The plugin is mounted into containers that have nothing, so the two that
# it needs (libyaml, expat) are taken as archives and disappear into the .so; the others stay in
# the command.
find_library(GV_YAML_ARCHIVE NAMES libyaml.a REQUIRED)
find_library(GV_EXPAT_ARCHIVE NAMES libexpat.a REQUIRED)
find_path(GV_YAML_INCLUDE yaml.h REQUIRED)
find_path(GV_EXPAT_INCLUDE expat.h REQUIRED)

add_library(gv_yaml STATIC IMPORTED)
set_target_properties(gv_yaml PROPERTIES IMPORTED_LOCATION ${GV_YAML_ARCHIVE}
  INTERFACE_INCLUDE_DIRECTORIES ${GV_YAML_INCLUDE})
# Debian 13 compiles libexpat.a for programs, not for libraries: it reaches libc's stderr (for its
# debugging output alone) in a way that a shared object cannot. In a copy that one symbol is ours.
set(GV_EXPAT_COPY ${CMAKE_BINARY_DIR}/cmake/libexpat.a)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/cmake)
execute_process(COMMAND ${CMAKE_OBJCOPY} --redefine-sym stderr=gv_expat_stream
  ${GV_EXPAT_ARCHIVE} ${GV_EXPAT_COPY} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "objcopy could not copy ${GV_EXPAT_ARCHIVE}; is binutils installed?")
endif()
add_library(gv_expat_stream STATIC cmake/expat_stream.c)
add_library(gv_expat STATIC IMPORTED)
set_target_properties(gv_expat PROPERTIES IMPORTED_LOCATION ${GV_EXPAT_COPY}
  INTERFACE_INCLUDE_DIRECTORIES ${GV_EXPAT_INCLUDE} INTERFACE_LINK_LIBRARIES gv_expat_stream)

find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(HWLOC IMPORTED_TARGET hwloc)
if(GV_PORTABLE)
  find_library(GV_JANSSON_ARCHIVE NAMES libjansson.a REQUIRED)
  find_library(GV_HWLOC_ARCHIVE NAMES libhwloc.a REQUIRED)
  find_library(GV_XML2_ARCHIVE NAMES libxml2.a REQUIRED)
  pkg_check_modules(LIBXML2 REQUIRED IMPORTED_TARGET libxml-2.0)
  set_target_properties(PkgConfig::JANSSON PROPERTIES INTERFACE_LINK_LIBRARIES ${GV_JANSSON_ARCHIVE})
  set_target_properties(PkgConfig::HWLOC PROPERTIES INTERFACE_LINK_LIBRARIES "${GV_HWLOC_ARCHIVE};m")
  set_target_properties(PkgConfig::LIBXML2 PROPERTIES INTERFACE_LINK_LIBRARIES "${GV_XML2_ARCHIVE};m")
  include(cmake/absent.cmake)
  gv_absent(${CMAKE_BINARY_DIR}/cmake/absent.c ${GV_XML2_ARCHIVE} ${GV_HWLOC_ARCHIVE})
endif()
if(GV_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()
