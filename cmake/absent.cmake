# The archives of libxml2 and hwloc name functions of ICU, zlib, lzma and udev that the command never
# reaches: it reads XML from memory, in the encodings that libxml2 knows by itself, and hwloc goes on
# without udev. For the portable command they are written here, so that nothing else is linked. Two
# can be called, and say that they cannot: ucnv_open (a document in another encoding), udev_new.
function(gv_absent out)
  execute_process(COMMAND ${CMAKE_NM} -u ${ARGN} OUTPUT_VARIABLE symbols ERROR_QUIET)
  string(REGEX MATCHALL " U [^\n]*" symbols "${symbols}")
  list(TRANSFORM symbols REPLACE "^ U " "")
  list(FILTER symbols INCLUDE REGEX "^(ucnv_|UCNV_|u_|lzma_|gz[a-z]|inflate|deflate|crc32|udev_)")
  list(REMOVE_DUPLICATES symbols)
  list(SORT symbols)
  set(text "/* Made by cmake/absent.cmake. */\n#define ABSENT __attribute__((visibility(\"hidden\")))\n")
  foreach(symbol ${symbols})
    if(symbol MATCHES "^ucnv_open")
      string(APPEND text
        "ABSENT void *${symbol}(const char *name, int *status)\n{\n    (void)name;\n"
        "    *status = 1; /* U_ILLEGAL_ARGUMENT_ERROR */\n    return 0;\n}\n")
    elseif(symbol STREQUAL "udev_new")
      string(APPEND text "ABSENT void *udev_new(void)\n{\n    return 0;\n}\n")
    else()
      string(APPEND text "ABSENT void ${symbol}(void)\n{\n    __builtin_trap();\n}\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)
endfunction()
