/* The paths that a launch of a fused kernel takes through its source: what sizes decide at run
 * time, not the tile or the type that it was compiled for. */
#ifndef LB_SIMT_FUSED_PATHS_H
#define LB_SIMT_FUSED_PATHS_H

#include "cuda/fused/cluster/cluster.h"
#include "cuda/fused/grid/grid.h"
#include "cuda/fused/step/step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a launch is given beside its kernel. */
struct path_shape {
    int batch, hidden, directions;
    bool ragged;
    bool train; /* forward stores gates and cells */
    bool cut;   /* a sequence takes several launches, as in a wavefront; of `step` it always does */
};

/* Print a line "family pass dtype tile: path" for each path. kernel->split and kernel->beside count
 * in the grid; of the other kernels the tile, the type, and the pass. */
void print_cluster_paths(const struct lb_cluster_tile *tile, enum lb_dtype dtype, bool backward,
                         const struct path_shape *shape);
void print_grid_paths(const struct lb_grid_kernel *kernel, const struct path_shape *shape);
void print_step_paths(const struct lb_step_tile *tile, enum lb_dtype dtype, enum lb_math math,
                      bool backward, const struct path_shape *shape);

#ifdef __cplusplus
}
#endif
#endif
