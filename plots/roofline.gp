# Rate over arithmetic intensity: one mark per case, the best rate of the run as a dashed line, and
# the rate at the lower bound of the time where that is known. Data: flops per byte, GFLOP/s, its
# interval, case, and the rate at the lower bound.

panel_width = words ? 560 : 460
panel_height = 300
left = 84
has_lower_bound = bound_sets > 0

do for [format in formats] {
    pwidth = format eq 'narrow' ? 300 : panel_width
    legend_across = format eq 'narrow' ? 1 : legend_columns
    legend_rows = (words(legend) + has_lower_bound + legend_across - 1) / legend_across
    top = head + 22 + 18 * legend_rows
    width = larger(words_width, left + pwidth + 30)
    height = top + panel_height + 56 + foot
    eval set_format
    set border 3 lc rgb faint
    set logscale xy 2
    set xrange [x_low / 1.3 : x_high * 1.3]
    set yrange [y_low / 1.3 : highest * 1.9]
    set grid back lt 1 lc rgb hair lw 0.8
    set tics nomirror scale 0.4 tc rgb ink
    unset key
    set xtics () nomirror
    do for [e = exponent_low(x_low / 1.3) : exponent_high(x_high * 1.3) : step_of(x_low, x_high)] {
        set xtics add (power_label(e) 2.0 ** e)
    }
    set ytics () nomirror
    do for [e = exponent_low(y_low / 1.3) : exponent_high(highest * 1.9) : step_of(y_low, highest)] {
        set ytics add (power_label(e) 2.0 ** e)
    }
    set lmargin at screen across(left)
    set rmargin at screen across(left + pwidth)
    set tmargin at screen down(top)
    set bmargin at screen down(top + panel_height)
    set xlabel 'arithmetic intensity, flops per byte' tc rgb ink offset 0, 0.4
    set ylabel 'rate, GFLOP/s' tc rgb ink offset 0.5, 0
    eval put_words
    eval put_legend
    if (has_lower_bound) {
        k = words(legend) + 1
        set label '' at screen across(legend_at(k) + 15), down(legend_down(k)) \
            point pt 1 ps 0.8 lc rgb faint
        set label 'at the lower bound' at screen across(legend_at(k) + 38), down(legend_down(k)) \
            left tc rgb ink
    }
    set arrow from graph 0, first best to graph 1, first best nohead lc rgb faint lw 1.2 dt 2
    set label best_label at graph 0, first best left offset 0.5, 0.6 font small_font tc rgb faint
    plot for [k = 1 : bound_sets] name.'.dat' index k - 1 \
             using 1:6 with points pt 1 ps 0.8 lc rgb faint, \
         for [k = 1 : words(legend)] name.'.dat' index k - 1 using 1:3:(0):($4 - $3) \
             with vectors heads size graph 0.004, 90 nofilled \
             lc rgb line_color[series_color[int(word(legend, k))]] lw 1, \
         for [k = 1 : words(legend)] '' index k - 1 using 1:2 with points \
             lc rgb line_color[series_color[int(word(legend, k))]] lw 1.4 \
             pt line_mark[series_mark[int(word(legend, k))]] ps 0.8
    unset label
    unset arrow
    unset output
}
