# Time over one axis: a panel for each set of sizes held constant, a line for each implementation.

panel_width = 285
panel_height = 190
gap_across = 24
gap_down = 56
left = 88
top = 116 + 18 * (legend_rows - 1)
rows = (panels + columns - 1) / columns
width = larger(words_width, left + columns * (panel_width + gap_across))
height = top + rows * (panel_height + gap_down) + 34

# Both axes count in powers of two; at most about seven have a label.
log2(v) = log(v) / log(2)
exponent_low(v) = int(ceil(log2(v) - 1e-9))
exponent_high(v) = int(floor(log2(v) + 1e-9))
step_of(low, high) = (exponent_high(high) - exponent_low(low)) / 7 + 1
digits = '⁰ ¹ ² ³ ⁴ ⁵ ⁶ ⁷ ⁸ ⁹'
raised(n) = (n > 9 ? raised(n / 10) : '').word(digits, n % 10 + 1)
power_label(e) = e < -9 ? '2⁻'.raised(-e) : e > 13 ? '2'.raised(e) : \
                 e < 0 ? sprintf('1/%d', 2 ** -e) : sprintf('%d', 2 ** e)

y_low = low_ns / unit_ns / 1.25
y_high = high_ns / unit_ns * 1.25

do for [format in 'svg png'] {
    if (format eq 'svg') { eval set_svg } else { eval set_png }
    set multiplot
    set border 3 lc rgb faint
    set logscale xy 2
    set xrange [x_low / 1.12 : x_high * 1.12]
    set yrange [y_low : y_high]
    set grid back lt 1 lc rgb hair lw 0.8
    set tics nomirror scale 0.4 tc rgb ink
    set bars 0.6
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
            do for [k = 1 : words(legend)] {
                s = int(word(legend, k))
                lx = 20 + ((k - 1) % legend_columns) * legend_width
                ly = 72 + ((k - 1) / legend_columns) * 18
                set arrow from screen across(lx), down(ly) to screen across(lx + 30), down(ly) nohead \
                    lc rgb line_color[series_color[s]] lw 1.8 dt line_dash[series_dash[s]]
                set label '' at screen across(lx + 15), down(ly) \
                    point pt line_mark[series_mark[s]] ps 0.8 lc rgb line_color[series_color[s]]
                set label series_name[s] at screen across(lx + 38), down(ly) left tc rgb ink
            }
        }
        set xlabel (panel > panels - columns ? x_label : '') tc rgb ink offset 0, 0.4
        set ylabel (column_of(panel) == 0 ? 'time of a call, '.unit : '') tc rgb ink offset 0.5, 0
        set ytics () nomirror
        do for [e = exponent_low(y_low) : exponent_high(y_high) : step_of(y_low, y_high)] {
            set ytics add ((column_of(panel) == 0 ? power_label(e) : '') 2.0 ** e)
        }
        list = panel_series[panel]
        first = panel_first[panel]
        plot for [k = 1 : words(list)] name.'.dat' index first + k - 1 \
                 using 1:($2 / unit_ns):($3 / unit_ns):($4 / unit_ns) with yerrorbars \
                 lc rgb line_color[series_color[int(word(list, k))]] lw 1.2 pt 0, \
             for [k = 1 : words(list)] name.'.dat' index first + k - 1 \
                 using 1:($2 / unit_ns) with linespoints \
                 lc rgb line_color[series_color[int(word(list, k))]] lw 1.8 \
                 dt line_dash[series_dash[int(word(list, k))]] \
                 pt line_mark[series_mark[int(word(list, k))]] ps 0.8
        unset label
        unset arrow
    }
    unset multiplot
    unset output
}
