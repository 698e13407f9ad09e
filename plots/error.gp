# Speed over error: one mark per case, the names of the precisions above their errors, and a dashed
# line at the speed of the fastest implementation in f32. Data: error, speed-up, its interval, case.

panel_width = words ? 560 : 460
panel_height = 300
left = 84

do for [format in formats] {
    pwidth = format eq 'narrow' ? 300 : panel_width
    legend_across = format eq 'narrow' ? 1 : legend_columns
    legend_rows = (words(legend) + legend_across - 1) / legend_across
    top = head + 44 + 18 * legend_rows
    width = larger(words_width, left + pwidth + 30)
    height = top + panel_height + 56 + foot
    eval set_format
    set border 3 lc rgb faint
    set logscale x 10
    set logscale y 2
    set xrange [x_low / 2 : x_high * 2]
    set yrange [y_low / 1.2 : y_high * 1.2]
    set grid back lt 1 lc rgb hair lw 0.8
    set tics nomirror scale 0.4 tc rgb ink
    unset key
    set xtics nomirror format '%.0e'
    decades = int(ceil(log10(x_high * 2) - log10(x_low / 2)))
    set xtics 10 ** ((decades - 1) / (format eq 'narrow' ? 4 : 7) + 1)
    set ytics () nomirror
    do for [e = exponent_low(y_low / 1.2) : exponent_high(y_high * 1.2) : step_of(y_low, y_high)] {
        set ytics add (power_label(e) 2.0 ** e)
    }
    set lmargin at screen across(left)
    set rmargin at screen across(left + pwidth)
    set tmargin at screen down(top)
    set bmargin at screen down(top + panel_height)
    set xlabel 'error in norm against the oracle' tc rgb ink offset 0, 0.4
    set ylabel 'speed-up over the fastest in f32' tc rgb ink offset 0.5, 0
    eval put_words
    eval put_legend
    do for [k = 1 : words(precision_names)] {
        set label word(precision_names, k) at first real(word(precision_errors, k)), \
            screen down(top - 8 - 12 * (k % 2)) center font small_font tc rgb faint
    }
    set arrow from graph 0, first 1 to graph 1, first 1 nohead lc rgb faint lw 1.2 dt 2
    plot for [k = 1 : words(legend)] name.'.dat' index k - 1 using 1:3:(0):($4 - $3) \
             with vectors heads size graph 0.004, 90 nofilled \
             lc rgb line_color[series_color[int(word(legend, k))]] lw 1, \
         for [k = 1 : words(legend)] '' index k - 1 using 1:2 with points \
             lc rgb line_color[series_color[int(word(legend, k))]] lw 1.4 \
             pt line_mark[series_mark[int(word(legend, k))]] ps 0.8
    unset label
    unset arrow
    unset output
}
