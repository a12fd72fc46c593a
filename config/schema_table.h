/* Words to write a schema table with; one line a field: where it is kept, what it may be, what it
 * means. `owner` is the struct that holds the member; the key is the member's name. */
#ifndef GV_CONFIG_SCHEMA_TABLE_H
#define GV_CONFIG_SCHEMA_TABLE_H

#include "config/schema.h"

#define AT(owner, member) .offset = offsetof(struct owner, member)
#define SIZE(owner, member) .size = sizeof(((struct owner *)0)->member)
#define COUNT(owner, member) .count_offset = offsetof(struct owner, member)
#define REQUIRED .required = true

#define TEXT(owner, member, ...)                                                                   \
    {                                                                                              \
        .key = #member, .type = GV_T_TEXT, AT(owner, member), SIZE(owner, member), __VA_ARGS__     \
    }
#define INT(owner, member, lowest, highest, unknown, ...)                                          \
    {                                                                                              \
        .key = #member, .type = GV_T_INT, AT(owner, member), .min = lowest, .max = highest,        \
        .silent = unknown, __VA_ARGS__                                                             \
    }
#define NUMBER(owner, member, highest, unknown, ...)                                               \
    {                                                                                              \
        .key = #member, .type = GV_T_NUMBER, AT(owner, member), .min = 0, .max = highest,          \
        .silent = unknown, __VA_ARGS__                                                             \
    }
#define FIGURE(owner, member, ...)                                                                 \
    {                                                                                              \
        .key = #member, .type = GV_T_FIGURE, AT(owner, member), .min = 0, .max = 1e9, __VA_ARGS__  \
    }
#define ENUM(owner, member, table, unknown, ...)                                                   \
    {                                                                                              \
        .key = #member, .type = GV_T_ENUM, AT(owner, member), .names = &gv_names_##table,          \
        .silent = unknown, __VA_ARGS__                                                             \
    }
#define PLAIN(owner, member, kind, ...)                                                            \
    {                                                                                              \
        .key = #member, .type = kind, AT(owner, member), __VA_ARGS__                               \
    }
#define LIST(owner, member, most, element, ...)                                                    \
    {                                                                                              \
        .key = #member, .type = GV_T_LIST, AT(owner, member), COUNT(owner, n##member),             \
        .limit = most, .object = element, __VA_ARGS__                                              \
    }
#define SECTION(name, where, element, ...)                                                         \
    {                                                                                              \
        .key = name, .type = GV_T_SECTION, .offset = where, .object = element, __VA_ARGS__         \
    }
#define DOC .doc =
#define OBJECT(var, owner, label, table, checker, text)                                            \
    const struct gv_object var = {                                                                 \
        label, sizeof(struct owner), table, sizeof(table) / sizeof(table[0]), checker, text}

#endif
