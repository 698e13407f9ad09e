# The median time of each case over the runs of a history; a vertical stroke is a change point.

panel_width = 420
panel_height = 110
gap_across = 80
gap_down = 62
left = 70
top = head + 18
width = larger(words_width, left + columns * (panel_width + gap_across) - gap_across + 20)
height = top + ((panels + columns - 1) / columns) * (panel_height + gap_down) - 8
stroke = '#cc4422'
data = name.'.dat'

do for [format in 'svg png'] {
    eval set_format
    set multiplot
    unset key
    set border 3 lc rgb faint
    set tics nomirror scale 0.4 tc rgb ink
    set grid y lt 1 lc rgb hair
    set xtics format '%.0f'
    do for [panel = 1 : panels] {
        set yrange [*:*]
        stats data index panel - 1 using 2 nooutput
        span = STATS_max - STATS_min
        least = 0.05 * STATS_max
        pad = (span > least ? 0.1 * span : (least - span) / 2)
        low = STATS_min - pad
        high = STATS_max + pad
        set yrange [low : high]
        ten = 10.0 ** floor(log10((high - low) / 4))
        ratio = (high - low) / 4 / ten
        set ytics ten * (ratio > 5 ? 10 : ratio > 2 ? 5 : ratio > 1 ? 2 : 1)
        x0 = left + column_of(panel) * (panel_width + gap_across)
        y0 = top + row_of(panel) * (panel_height + gap_down)
        eval place_panel
        unset label
        if (panel == 1) { eval put_words }
        set label panel_title[panel] at graph 0, graph 1 left offset 0, 0.6 tc rgb ink
        plot data index panel - 1 using ($1 - 0.5):($3 > 0 ? low : NaN):(0):(high - low) \
                 with vectors nohead lc rgb stroke lw 1.6, \
             data index panel - 1 using 1:2 with linespoints pt 7 ps 0.25 lc rgb line_color[1] lw 1.2
    }
    unset multiplot
    unset output
}
