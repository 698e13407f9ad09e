/* Runs the oracle for one layer, and brings its arrays to the layout of the kernels. */
#include "truth.h"

#include "reference/input_data.h"
#pragma GCC diagnostic ignored "-Wshadow" /* a C struct and a function share a name */
#include "reference/oracle.h"

#include <cmath>

namespace simt_fused
{

namespace
{

constexpr uint64_t seed = 1;
constexpr int input = 3;

using doubles = std::vector<double>;

doubles draw(const lb_problem &p, lb_tensor what, size_t count)
{
    doubles values(count);
    lb_draw_rows(&p, seed, what, static_cast<size_t>(p.batch), values.data());
    return values;
}

/* Draws one direction's weights: w_ih [4H, input], w_hh [4H, H], b_ih [4H] and b_hh [4H], one after
 * the other in `all`. */
struct weights {
    doubles all;
    double *w_ih, *w_hh, *b_ih, *b_hh;
    weights(const lb_problem &p, size_t layer_dir, bool saturated)
    {
        size_t hidden = static_cast<size_t>(p.hidden), rows = 4 * hidden;
        all.resize(rows * (input + hidden + 2));
        w_ih = all.data(), w_hh = w_ih + rows * input;
        b_ih = w_hh + rows * hidden, b_hh = b_ih + rows;
        lb_draw_weights(&p, seed, LB_W_IH, layer_dir, w_ih);
        lb_draw_weights(&p, seed, LB_W_HH, layer_dir, w_hh);
        lb_draw_weights(&p, seed, LB_B_IH, layer_dir, b_ih);
        lb_draw_weights(&p, seed, LB_B_HH, layer_dir, b_hh);
        for (size_t gate = 0; saturated && gate < 4; gate++)
            b_ih[gate * hidden] = 16; /* all gates are open: c grows by 1 per step */
    }
};

/* Returns the index of element (t, b, d, u) in [T, B, D, H]. */
size_t place(const lb_problem &p, size_t t, size_t b, size_t d, size_t u)
{
    return ((t * static_cast<size_t>(p.batch) + b) * static_cast<size_t>(p.directions) + d) *
               static_cast<size_t>(p.hidden) +
           u;
}

/* Calls body(t, b, d, u) for all elements. */
template <class Body> void for_all(const lb_problem &p, const Body &body)
{
    for (size_t t = 0; t < static_cast<size_t>(p.seq_len); t++)
        for (size_t b = 0; b < static_cast<size_t>(p.batch); b++)
            for (size_t d = 0; d < static_cast<size_t>(p.directions); d++)
                for (size_t u = 0; u < static_cast<size_t>(p.hidden); u++)
                    body(t, b, d, u);
}

void set_inputs(truth &r, const doubles &x, size_t d, const weights &w)
{
    const lb_problem &p = r.problem;
    size_t hidden = static_cast<size_t>(p.hidden), batch = static_cast<size_t>(p.batch);
    r.w_hh.insert(r.w_hh.end(), w.w_hh, w.b_ih);
    for (size_t u = 0; u < hidden; u++)
        for (size_t q = 0; q < 4; q++)
            r.bias.push_back(w.b_ih[q * hidden + u] + w.b_hh[q * hidden + u]);
    for_all(p, [&](size_t t, size_t b, size_t of, size_t u) {
        for (size_t q = 0; of == d && q < 4; q++) {
            double sum = 0;
            for (size_t k = 0; k < input; k++)
                sum += w.w_ih[(q * hidden + u) * input + k] * x[(t * batch + b) * input + k];
            r.pre[4 * place(p, t, b, d, u) + q] = sum;
        }
    });
}

/* Copies the oracle's [D, T, B, 4, H] (parts 4) or [D, T, B, H] (parts 1) to [T, B, D, H, parts].
 */
doubles to_layout(const lb_problem &p, const doubles &from, size_t parts)
{
    size_t hidden = static_cast<size_t>(p.hidden), batch = static_cast<size_t>(p.batch);
    doubles to(from.size());
    for_all(p, [&](size_t t, size_t b, size_t d, size_t u) {
        size_t row = (d * static_cast<size_t>(p.seq_len) + t) * batch + b;
        for (size_t q = 0; q < parts; q++)
            to[parts * place(p, t, b, d, u) + q] = from[(row * parts + q) * hidden + u];
    });
    return to;
}

/* Sets elements past the end of a row to `value`. */
void set_past(const truth &r, doubles &of, size_t parts, double value)
{
    for_all(r.problem, [&](size_t t, size_t b, size_t d, size_t u) {
        bool past = !r.lengths.empty() && t >= static_cast<size_t>(r.lengths[b]);
        for (size_t q = 0; past && q < parts; q++)
            of[parts * place(r.problem, t, b, d, u) + q] = value;
    });
}

} // namespace

truth make_truth(const shape &s, lb_dtype dtype, lb_act act, bool saturated)
{
    truth r = {};
    lb_problem &p = r.problem;
    p = {s.seq_len, s.batch, input,    s.hidden,         1, s.directions, dtype, LB_TRAIN,
         LB_IEEE,   act,     s.ragged, LB_CELL_STANDARD, 0};
    lb_counts n;
    lb_problem_counts(&p, &n, nullptr);
    struct lb_lstm_counts m = lb_lstm_counts(&p);
    if (s.ragged) {
        r.lengths.resize(static_cast<size_t>(s.batch));
        lb_draw_lengths(&p, seed, r.lengths.size(), r.lengths.data());
    }
    doubles x = draw(p, LB_X, n.x), all(m.weights), dx(n.x);
    doubles between(m.between), operand(m.operand), gates(m.gates), cells(m.cells);
    r.h0 = draw(p, LB_H0, n.state), r.c0 = draw(p, LB_C0, n.state);
    r.dy = draw(p, LB_DY, n.y);
    r.dhn = draw(p, LB_DHN, n.state), r.dcn = draw(p, LB_DCN, n.state);
    r.y.resize(m.y), r.pre.resize(4 * n.y);
    for (doubles *state : {&r.hn, &r.cn, &r.dh0, &r.dc0})
        state->resize(n.state);

    lb_oracle net = {};
    net.problem = p;
    net.lengths = s.ragged ? r.lengths.data() : nullptr;
    net.weights = all.data(), net.x = x.data(), net.h0 = r.h0.data(), net.c0 = r.c0.data();
    net.y = r.y.data(), net.gates = gates.data(), net.cells = cells.data();
    net.hn = r.hn.data(), net.cn = r.cn.data();
    net.dy = r.dy.data(), net.dhn = r.dhn.data(), net.dcn = r.dcn.data();
    net.dx = dx.data(), net.dh0 = r.dh0.data(), net.dc0 = r.dc0.data();
    net.between = between.data(), net.operand = operand.data();
    for (size_t d = 0; d < static_cast<size_t>(s.directions); d++) {
        weights w(p, d, saturated);
        lb_oracle_pack(&net, d, w.all.data());
        set_inputs(r, x, d, w);
    }
    lb_oracle_forward(&net);
    r.gates = to_layout(p, gates, 4), r.cells = to_layout(p, cells, 1);
    lb_oracle_backward(&net);
    r.dgates = to_layout(p, gates, 4);
    set_past(r, r.y, 1, 0);
    set_past(r, r.dgates, 4, 0);
    set_past(r, r.gates, 4, NAN);
    set_past(r, r.cells, 1, NAN);
    return r;
}

} // namespace simt_fused
