#include "profiler/report/colour.h"

#include <math.h>
#include <stdio.h>

#define STOPS 5

static const unsigned char stops[STOPS][3] = {
    {0x00, 0x22, 0x4e}, {0x41, 0x4d, 0x6b}, {0x7c, 0x7b, 0x78},
    {0xbc, 0xaf, 0x6f}, {0xfe, 0xe8, 0x38},
};

double gv_heat_place(const struct gv_heat *heat, double value)
{
    if (!(heat->high > heat->low))
        return 1;
    double place = log(value / heat->low) / log(heat->high / heat->low);
    return place < 0 ? 0 : place > 1 ? 1 : place;
}

double gv_heat_value(const struct gv_heat *heat, double place)
{
    return heat->low * pow(heat->high / heat->low, place);
}

static void mix(double place, double rgb[3])
{
    double at = place * (STOPS - 1);
    int i = at >= STOPS - 1 ? STOPS - 2 : (int)at;
    for (int k = 0; k < 3; k++)
        rgb[k] = stops[i][k] + (at - i) * (stops[i + 1][k] - stops[i][k]);
}

const char *gv_heat_colour(double place, char out[8])
{
    double rgb[3];
    mix(place, rgb);
    snprintf(
        out, 8, "#%02x%02x%02x", (unsigned)lround(rgb[0]) & 0xff, (unsigned)lround(rgb[1]) & 0xff,
        (unsigned)lround(rgb[2]) & 0xff);
    return out;
}

/* Relative luminance as WCAG 2.1 defines it: over 0.18 black text has the greater contrast. */
bool gv_heat_is_light(double place)
{
    static const double weight[3] = {0.2126, 0.7152, 0.0722};
    double rgb[3], luminance = 0;
    mix(place, rgb);
    for (int k = 0; k < 3; k++) {
        double c = rgb[k] / 255;
        luminance += weight[k] * (c <= 0.03928 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return luminance > 0.18;
}
