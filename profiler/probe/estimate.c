/* What is expected of groups before anything is measured, for the times in a plan. */
#include <math.h>

#include "profiler/probe/gv_calibration.h"

#define MOST_IN_A_BRIDGE 9 /* CUDA maps 8 peers a GPU */

/* GB/s a lane one way, by generation: transfers a second times the code's efficiency (PCI Express
 * Base Specification; 8b/10b up to generation 2, 128b/130b up to 5). */
static double lane_gbs(int gen)
{
    static const double gbs[] = {0, 0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
    return gen >= 1 && gen <= 6 ? gbs[gen] : gbs[3];
}

static double link_gbs(const struct gv_calibration *cal, int gpu)
{
    const struct gv_device *d = &cal->gpus.device[gpu];
    return lane_gbs(d->link_gen_max) * (d->link_width_max > 0 ? d->link_width_max : 16);
}

/* Parts of the link's rate that busbw reached. Through host memory: 6.9 of 15.8 GB/s (4028, gen3
 * x16), 27.8 of 63 (H200, gen5 x16); P2P below one switch: 11.4 of 15.8 (4028). An NVLink: 73.3
 * GB/s by four (GV100), 331 by eighteen (H200). */
static double edge_gbs(const struct gv_calibration *cal, int a, int b)
{
    if (cal->nvlinks[a][b])
        return 18.3 * cal->nvlinks[a][b];
    return fmin(link_gbs(cal, a), link_gbs(cal, b)) *
           (gv_shape_default_p2p(cal, a, b) ? 0.7 : 0.44);
}

double gv_estimate_ring_gbs(const struct gv_calibration *cal, gv_gpuset group)
{
    int ring[GV_MAX_GPUS], n = gv_shape_ring(cal, group, ring);
    double least = INFINITY;
    for (int i = 0; i < n; i++)
        least = fmin(least, edge_gbs(cal, ring[i], ring[(i + 1) % n]));
    return least;
}

int gv_estimate_variants(const struct gv_calibration *cal, gv_gpuset group)
{
    int ring[GV_MAX_GPUS], n = gv_shape_ring(cal, group, ring), crossing = 0;
    bool one_node = true;
    for (int i = 0; i < n; i++) {
        crossing += cal->path_class[ring[i]][ring[(i + 1) % n]] == GV_PATH_PHB;
        one_node &= cal->machine.gpus[ring[i]].numa_node == cal->machine.gpus[ring[0]].numa_node;
    }
    if (!crossing)
        return 1;
    return 1 + (n > 2) + (one_node && n <= MOST_IN_A_BRIDGE);
}
