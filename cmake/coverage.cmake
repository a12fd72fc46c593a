# Which lines the tests reach (tests/coverage builds so and prints them).
option(GV_COVERAGE "Count which lines run; tests/coverage prints them" OFF)
if(GV_COVERAGE)
  add_library(gv_coverage STATIC ${CMAKE_SOURCE_DIR}/cmake/coverage.c)
  target_link_libraries(gv_coverage PUBLIC ${CMAKE_DL_LIBS})
  add_compile_options(--coverage -Og -fprofile-update=atomic)
  add_link_options(--coverage LINKER:--wrap=_exit LINKER:-u,gv_coverage_unit
    LINKER:--export-dynamic-symbol=gv_coverage_units)
  link_libraries(gv_coverage)
endif()
