# A measure over one axis: one panel per set of constant sizes, one line per implementation, and a
# dotted line for the lower bound. Data: x, value, its interval, case, divisor, lower bound. The
# script draws value / divisor in units of unit_size.

panel_width = 285
panel_height = 190
gap_across = 24
gap_down = 56
left = 78
y_low = low / unit_size / 1.25
y_high = high / unit_size * 1.25

do for [format in formats] {
    across_count = format eq 'narrow' ? 1 : columns
    legend_across = format eq 'narrow' ? 1 : legend_columns
    legend_rows = (words(legend) + has_lower_bound + legend_across - 1) / legend_across
    top = head + 28 + 18 * legend_rows
    down_count = (panels + across_count - 1) / across_count
    width = larger(words_width, left + across_count * (panel_width + gap_across))
    height = top + down_count * (panel_height + gap_down) + foot
    eval set_format
    set multiplot
    set border 3 lc rgb faint
    set logscale xy 2
    set xrange [x_low / 1.12 : x_high * 1.12]
    set yrange [y_low : y_high]
    set grid back lt 1 lc rgb hair lw 0.8
    set tics nomirror scale 0.4 tc rgb ink
    unset key

    set xtics () nomirror
    if (words(x_values) == 0) {
        do for [e = exponent_low(x_low) : exponent_high(x_high) : step_of(x_low, x_high)] {
            set xtics add (power_label(e) 2.0 ** e)
        }
    }
    do for [k = 1 : words(x_values)] {
        set xtics add (word(x_values, k) real(word(x_values, k)))
    }

    do for [panel = 1 : panels] {
        x0 = left + column_of(panel) * (panel_width + gap_across)
        y0 = top + row_of(panel) * (panel_height + gap_down)
        set lmargin at screen across(x0)
        set rmargin at screen across(x0 + panel_width)
        set tmargin at screen down(y0)
        set bmargin at screen down(y0 + panel_height)
        set label panel_title[panel] at graph 0, graph 1 left offset 0, 0.7 tc rgb ink
        if (panel == 1) {
            eval put_words
            eval put_legend
            if (has_lower_bound) {
                k = words(legend) + 1
                lx = legend_at(k)
                ly = legend_down(k)
                set arrow from screen across(lx), down(ly) to screen across(lx + 30), down(ly) nohead \
                    lc rgb faint lw 1 dt 3
                set label 'lower bound' at screen across(lx + 38), down(ly) left tc rgb ink
            }
        }
        set xlabel (panel > panels - across_count ? x_label : '') tc rgb ink offset 0, 0.4
        set ylabel (column_of(panel) == 0 ? y_label : '') tc rgb ink offset 0, 0
        set ytics () nomirror
        do for [e = exponent_low(y_low) : exponent_high(y_high) : step_of(y_low, y_high)] {
            set ytics add ((column_of(panel) == 0 ? power_label(e) : '') 2.0 ** e)
        }
        if (exponent_high(y_high) - exponent_low(y_low) < 2) { # too few powers of two: round numbers instead
            set ytics () nomirror
            do for [d = int(floor(log10(y_low))) : int(ceil(log10(y_high)))] {
                do for [m in '1 1.2 1.5 2 3 4 5 6 8'] {
                    v = m * 10.0 ** d
                    set ytics add ((column_of(panel) == 0 ? sprintf('%g', v) : '') v)
                }
            }
        }
        list = panel_series[panel]
        first = panel_first[panel]
        plot for [k = 1 : words(list)] name.'.dat' index first + k - 1 \
                 using 1:($7 / $6 / unit_size) with lines lc rgb faint lw 1 dt 3, \
             for [k = 1 : words(list)] '' index first + k - 1 \
                 using 1:($3 / $6 / unit_size):(0):(($4 - $3) / $6 / unit_size) \
                 with vectors heads size graph 0.008, 90 nofilled \
                 lc rgb line_color[series_color[int(word(list, k))]] lw 1.2, \
             for [k = 1 : words(list)] '' index first + k - 1 \
                 using 1:($2 / $6 / unit_size) with linespoints \
                 lc rgb line_color[series_color[int(word(list, k))]] lw 1.8 \
                 dt line_dash[series_dash[int(word(list, k))]] \
                 pt line_mark[series_mark[int(word(list, k))]] ps 0.8
        unset label
        unset arrow
    }
    unset multiplot
    unset output
}
