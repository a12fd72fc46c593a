/* The heat map's colours: dark blue to yellow through grey, after Nunez, Anderton, Renslow,
 * "Optimizing colormaps with consideration for color vision deficiency" (PLoS ONE 13(7), 2018): it
 * reads the same with any colour vision, and in grey by lightness. */
#ifndef GV_REPORT_COLOUR_H
#define GV_REPORT_COLOUR_H

#include <stdbool.h>

/* Figures from `low` to `high`, both over 0, by their logarithm. */
struct gv_heat {
    double low, high;
};

/* Place of a figure on the scale, 0 to 1; 1 where the scale has one figure only. */
double gv_heat_place(const struct gv_heat *heat, double value);
/* The figure at a place. */
double gv_heat_value(const struct gv_heat *heat, double place);
/* "#rrggbb" of a place. */
const char *gv_heat_colour(double place, char out[8]);
/* Whether text on it must be dark. */
bool gv_heat_is_light(double place);

#endif
