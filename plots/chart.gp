# Lines over one size, one panel per set of constant sizes, with a dotted line for the lower bound. Where
# lines is 0: a mark per case in one panel, a + at the lower bound, and a dashed line at the best rate or at
# a speed-up of 1; empty lines in the data keep the marks apart. Data: x, y, its interval, case, y at the
# lower bound, and instances, which are written beside the marks where x is their throughput. y is drawn in
# units of unit_size.

panel_width = lines ? 285 : 560
panel_height = lines ? 190 : 300
gap_across = lines ? 24 : 30
gap_down = 56
left = 84
pad = lines ? 1.25 : 1.3

# The ranges of both axes, of all panels together, and the highest mark.
data = name.'.dat'
known(n, other) = valid(n) ? column(n) : other
stats data using ($2 > 0 ? $1 : NaN) name 'X' nooutput
stats data using 2 name 'Y' nooutput
stats data using (smaller(known(6, $2), smaller(known(3, $2), $2))) name 'LOW' nooutput
stats data using (larger(known(6, $2), larger(known(4, $2), $2))) name 'HIGH' nooutput
stats data using (known(6, 0) > 0) name 'BOUND' nooutput
has_lower_bound = BOUND_max > 0
is_error = words(precision_names) > 0
reference = is_error ? 1 : lines ? 0 : Y_max

# A unit that suits the values.
units = unit eq 'time' ? 'ns µs ms s' : unit eq 'bytes' ? 'B KiB MiB GiB' : ''
unit_step = unit eq 'bytes' ? 1024.0 : 1000.0
order = int(floor(log(sqrt(LOW_min) * sqrt(HIGH_max) / 500) / log(unit_step))) + 1
order = larger(0, smaller(order, words(units) - 1))
unit_size = units eq '' ? 1.0 : unit_step ** order
y_label = y_label.(units eq '' ? '' : ', '.word(units, order + 1))

# The series that the panels show, in as many columns as fit the width.
legend = ''
longest = 1
do for [s = 1 : |series_name|] {
    shown = 0
    do for [panel = 1 : panels] { shown = shown || strstrt(' '.panel_series[panel], sprintf(' %d ', s)) }
    if (shown) {
        legend = legend.sprintf('%d ', s)
        longest = larger(longest, strlen(series_name[s]))
    }
}
legend_width = 60 + 8 * longest
legend_columns = larger(1, int((lines ? 60 + 300 * columns : 600) / legend_width))

y_low = LOW_min / unit_size / pad
y_high = HIGH_max / unit_size * (lines ? pad : 1.6)
x_pad = lines ? 1.12 : 1.6
legend_rows = (words(legend) + has_lower_bound + legend_columns - 1) / legend_columns
top = head + 28 + 18 * legend_rows + (words(precision_names) > 0 ? 22 : 0)
down_count = (panels + columns - 1) / columns
width = larger(words_width, left + columns * (panel_width + gap_across))
height = top + down_count * (panel_height + gap_down) + foot

do for [format in 'svg png'] {
    eval set_format
    set multiplot
    set border 3 lc rgb faint
    set logscale x is_error ? 10 : 2
    set logscale y 2
    set xrange [X_min / x_pad : X_max * x_pad]
    set yrange [y_low : y_high]
    set grid back lt 1 lc rgb hair lw 0.8
    set tics nomirror scale 0.4 tc rgb ink
    unset key

    if (lines) { set xtics () nomirror } else { set xtics nomirror format is_error ? '%.0e' : '%g' }
    if (instances) { # calls per second, as round numbers
        do for [d = int(floor(log10(X_min))) : int(ceil(log10(X_max)))] {
            do for [m in (X_max / X_min > 8 ? '1' : X_max / X_min > 3 ? '1 2 3 5 7' : '1 1.2 1.5 2 2.5 3 4 5 6 8')] {
                v = m * 10.0 ** d
                set xtics add ((v < 1e4 ? sprintf('%g', v) : v < 1e7 ? sprintf('%gk', v / 1e3) : sprintf('%gM', v / 1e6)) v)
            }
        }
    }
    do for [k = 1 : words(x_values)] { set xtics add (word(x_labels, k) real(word(x_values, k))) }

    do for [panel = 1 : panels] {
        x0 = left + column_of(panel) * (panel_width + gap_across)
        y0 = top + row_of(panel) * (panel_height + gap_down)
        eval place_panel
        set label panel_title[panel] at graph 0, graph 1 left offset 0, 0.7 tc rgb ink
        if (panel == 1) {
            eval put_words
            eval put_legend
        }
        if (panel == 1 && has_lower_bound) {
            lx = legend_at(words(legend) + 1)
            ly = legend_down(words(legend) + 1)
            if (lines) {
                set arrow from screen across(lx), down(ly) to screen across(lx + 30), down(ly) nohead \
                    lc rgb faint lw 1 dt 3
            } else {
                set label '' at screen across(lx + 15), down(ly) point pt 1 ps 0.8 lc rgb faint
            }
            set label 'lower bound of the time' at screen across(lx + 38), down(ly) left tc rgb ink
        }
        do for [k = 1 : words(precision_names)] {
            set label word(precision_names, k) at first real(word(precision_errors, k)), \
                screen down(top - 8 - 12 * (k % 2)) center font small_font tc rgb faint
        }
        if (reference > 0) {
            set arrow from graph 0, first reference to graph 1, first reference nohead lc rgb faint lw 1.2 dt 2
        }
        set xlabel (panel > panels - columns ? x_label : '') tc rgb ink offset 0, 0.4
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
        plot for [k = 1 : words(list)] data index first + k - 1 using 1:($6 / unit_size) \
                 with linespoints lc rgb faint lw 1 dt 3 pt (lines ? 0 : 1) ps 0.8, \
             for [k = 1 : words(list)] '' index first + k - 1 \
                 using 1:($3 / unit_size):(0):(($4 - $3) / unit_size) \
                 with vectors heads size graph 0.008, 90 nofilled \
                 lc rgb line_color[series_color[int(word(list, k))]] lw 1.2, \
             for [k = 1 : words(list)] '' index first + k - 1 using 1:($2 / unit_size) \
                 with linespoints lc rgb line_color[series_color[int(word(list, k))]] \
                 lw (lines ? 1.8 : 1.4) dt line_dash[series_dash[int(word(list, k))]] \
                 pt line_mark[series_mark[int(word(list, k))]] ps 0.8, \
             for [k = 1 : words(list)] '' index first + k - 1 \
                 using 1:($2 / unit_size):(instances ? sprintf('%d', $7) : '') \
                 with labels offset 0.9, 0.7 font small_font tc rgb ink
        unset label
        unset arrow
    }
    unset multiplot
    unset output
}
