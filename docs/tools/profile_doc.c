/* Writes docs/profile.md: gv-profile-doc FILE, or to standard output. */
#include <stdio.h>

#include "base/gv_str.h"
#include "config/gv_profile.h"

int main(int argc, char **argv)
{
    struct gv_str text = {0};
    gv_profile_schema_markdown(&text);
    gv_str_add(
        &text, "\nThis page is made from the schema's table (`config/schema.c`) by `cmake --build "
               "build --target docs`.\n");
    FILE *out = text.failed ? NULL : argc > 1 ? fopen(argv[1], "w") : stdout;
    bool good = out && fwrite(text.data, 1, text.len, out) == text.len && !fclose(out);
    gv_str_free(&text);
    if (!good)
        perror(argc > 1 ? argv[1] : "standard output");
    return good ? 0 : 1;
}
