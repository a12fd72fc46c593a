# What is built here runs on older systems: the plugin always (glibc 2.28 and later, see
# glibc_floor.c), the command with GV_PORTABLE, as the packages have it: then jansson and hwloc are
# inside it too, and nothing in the bytes tells where they were built.
option(GV_PORTABLE "The command needs nothing but glibc 2.28; the same bytes from any folder" OFF)
if(GV_PORTABLE)
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=.)
  set(CMAKE_SKIP_RPATH ON)
endif()

set(GV_FLOOR "")
if(NOT GV_SANITIZE AND NOT GV_COVERAGE AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
  add_library(gv_floor OBJECT ${CMAKE_SOURCE_DIR}/cmake/glibc_floor.c)
  target_compile_options(gv_floor PRIVATE -fno-builtin -Wno-missing-prototypes)
  add_library(gv_floor_main OBJECT EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/glibc_floor_main.c)
  target_compile_options(gv_floor_main PRIVATE -fno-builtin -Wno-missing-prototypes)
  set(GV_FLOOR ON)
endif()
# libdl and libpthread are named so that glibc before 2.34 loads them; later ones keep empty files.
function(gv_old_glibc target)
  if(GV_FLOOR)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:gv_floor>)
    target_link_libraries(${target} PRIVATE -Wl,--push-state,--no-as-needed -l:libdl.so.2
      -l:libpthread.so.0 -Wl,--pop-state)
  endif()
endfunction()

if(GV_PORTABLE AND NOT GV_FLOOR)
  message(FATAL_ERROR "GV_PORTABLE is for x86_64 and aarch64, without sanitizers")
endif()
