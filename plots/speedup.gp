# Speed-up over a baseline: one panel per implementation and value of the constant size, one cell per
# problem. Blue is faster, orange is slower, white is equal; grey cells have no time.

cell_width = 58
cell_height = 30
gap_across = 94
gap_down = 74
left = 84
top = head + 30
bar = 330

# A diverging palette with white in the middle; every colour vision tells orange from blue.
set palette defined (-1 '#8c3b00', -0.6 '#d8701c', -0.3 '#f6bf8c', 0 '#ffffff', \
                     0.3 '#9cc9e6', 0.6 '#3d86c0', 1 '#0b3c75')
bounded(v) = v > range ? range : v < -range ? -range : v
speed_color(v) = abs(bounded(log2(v))) > 0.55 * range ? 0xffffff : 0x1b1b1b

# States of a cell, column 6 of the data: 0 speed-up, 1 no time that counts, 2 failed, 3 no baseline,
# 4 no row.
array state_fill[4] = ['#e4e4e4', '#555555', '#ffffff', '#ffffff']
state_color(s) = s == 2 ? 0xffffff : 0x6a6a6a

columns_most = 2
rows_most = 2
do for [panel = 1 : panels] {
    columns_most = larger(columns_most, words(panel_x[panel]))
    rows_most = larger(rows_most, words(panel_y[panel]))
}
pitch = columns_most * cell_width + gap_across
fitting = int(larger(1, smaller(4, 1400 / pitch))) # as many columns of panels as fit a screen
columns = smaller(columns, fitting)
do for [panel = 1 : panels] { pitch = larger(pitch, 7 * strlen(panel_title[panel]) + 30) }
down_count = (panels + columns - 1) / columns
width = larger(larger(words_width, left + columns * pitch - 40), left + bar + 24)
height = top + down_count * (rows_most * cell_height + gap_down) + 94
key = height - 92

do for [format in 'svg png'] {
    eval set_format
    set multiplot
    unset border
    unset key
    set tics nomirror scale 0 tc rgb ink
    set cbrange [-range : range]
    set style fill solid 1 noborder
    set boxwidth 1 absolute

    do for [panel = 1 : panels] {
        x0 = left + column_of(panel) * pitch
        y0 = top + row_of(panel) * (rows_most * cell_height + gap_down)
        panel_width = words(panel_x[panel]) * cell_width
        panel_height = words(panel_y[panel]) * cell_height
        eval place_panel
        set xrange [-0.5 : words(panel_x[panel]) - 0.5]
        set yrange [-0.5 : words(panel_y[panel]) - 0.5]
        set xtics () nomirror scale 0 offset 0, 0.3
        do for [k = 1 : words(panel_x[panel])] {
            set xtics add (word(panel_x[panel], k) k - 1)
        }
        set ytics () nomirror scale 0 offset 0.5, 0
        do for [k = 1 : words(panel_y[panel])] {
            set ytics add (word(panel_y[panel], k) k - 1)
        }
        set xlabel 'hidden size H' tc rgb ink offset 0, 0.6
        set ylabel y_label tc rgb ink offset 0.5, 0
        set label panel_title[panel] at graph 0, graph 1 left offset 0, 0.8 tc rgb ink
        unset colorbox
        if (panel == 1) {
            eval put_words
            set label 'slower' at screen across(left), down(key - 20) left font small_font tc rgb faint
            set label 'faster' at screen across(left + bar), down(key - 20) right font small_font tc rgb faint
            set colorbox horizontal user origin screen across(left), down(key) \
                size screen across(bar), screen across(12) * width / height noborder
            set cbtics () scale 0 offset 0, 0.6 font small_font
            do for [e = -range : range] {
                if (e % (range > 3 ? 2 : 1) == 0) {
                    beyond = !clipped || abs(e) < range ? '' : e < 0 ? '≤ ' : '≥ '
                    set cbtics add (beyond.(e < 0 ? sprintf('1/%d', 2 ** -e) : sprintf('%d', 2 ** e)).'x' e)
                }
            }
            set label '= tied: intervals overlap     × failed     grey: no time that counts     – not in this run' \
                at screen across(left), down(height - 50) left font small_font tc rgb faint
        }
        plot name.'.dat' index panel - 1 using 3:($6 == 0 ? $4 : NaN):(0.49):(0.48):(bounded(log2($5))) \
                 with boxxyerror lc palette, \
             for [s = 1 : 4] '' index panel - 1 using 3:($6 == s ? $4 : NaN):(0.49):(0.48) \
                 with boxxyerror lc rgb state_fill[s], \
             '' index panel - 1 using 3:($6 == 0 ? $4 : NaN):7:(speed_color($5)) \
                 with labels tc rgb variable, \
             '' index panel - 1 using 3:($6 > 0 ? $4 : NaN):7:(state_color($6)) \
                 with labels font small_font tc rgb variable
        unset label
    }
    unset multiplot
    unset output
}
