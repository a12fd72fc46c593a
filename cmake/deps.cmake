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
add_library(gv_expat STATIC IMPORTED)
set_target_properties(gv_expat PROPERTIES IMPORTED_LOCATION ${GV_EXPAT_ARCHIVE}
  INTERFACE_INCLUDE_DIRECTORIES ${GV_EXPAT_INCLUDE})

find_package(PkgConfig REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(HWLOC IMPORTED_TARGET hwloc)
if(GV_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()
