# Draws speedup-b_f32_infer.svg and speedup-b_f32_infer.png from speedup-b_f32_infer.dat. Edit it as you like, then run in this
# folder: gnuplot speedup-b_f32_infer.gp
reset session
name = 'speedup-b_f32_infer'
machine = 'AMD EPYC, 2 threads, 23.5 GiB, Linux 6.18.44-fc-v657 x86_64'
program = 'bench-lstm 0.1.0 (7a704144d776), run of 2026-11-22'
heading = 'LSTM inference, f32: speed-up over onednn by B and H'
reading = 'Higher is better (blue). The median time of onednn divided by that of the panel''s'
reading_more = 'implementation.'
panels = 6
columns = 3
array series_name[15]
series_name[1] = 'cpu_ref'
series_name[2] = 'cpu_simd'
series_name[3] = 'cuda_naive'
series_name[4] = 'cuda_step'
series_name[5] = 'cudnn'
series_name[6] = 'cudnn:persist_dynamic'
series_name[7] = 'cudnn:persist_static'
series_name[8] = 'cudnn:small_h'
series_name[9] = 'cudnn:standard'
series_name[10] = 'fused'
series_name[11] = 'fused:cluster'
series_name[12] = 'fused:grid'
series_name[13] = 'fused:step'
series_name[14] = 'onednn'
series_name[15] = 'openblas'
array series_color[15] = [8, 2, 5, 7, 1, 1, 1, 1, 1, 4, 4, 4, 4, 3, 6]
array series_mark[15] = [8, 2, 5, 7, 1, 4, 7, 10, 3, 4, 7, 10, 3, 3, 6]
array series_dash[15] = [1, 1, 1, 1, 1, 2, 3, 4, 1, 1, 2, 3, 4, 1, 1]
array panel_title[6]
array panel_columns[6]
array panel_rows[6]
array panel_x[6]
array panel_y[6]
panel_title[1] = 'cpu_ref, T = 32'
panel_columns[1] = 3; panel_rows[1] = 2; panel_x[1] = '64 128 256 '; panel_y[1] = '1 8 '
panel_title[2] = 'cpu_simd, T = 32'
panel_columns[2] = 3; panel_rows[2] = 2; panel_x[2] = '64 128 256 '; panel_y[2] = '1 8 '
panel_title[3] = 'openblas, T = 32'
panel_columns[3] = 3; panel_rows[3] = 2; panel_x[3] = '64 128 256 '; panel_y[3] = '1 8 '
panel_title[4] = 'cpu_ref, T = 128'
panel_columns[4] = 3; panel_rows[4] = 2; panel_x[4] = '64 128 256 '; panel_y[4] = '1 8 '
panel_title[5] = 'cpu_simd, T = 128'
panel_columns[5] = 3; panel_rows[5] = 2; panel_x[5] = '64 128 256 '; panel_y[5] = '1 8 '
panel_title[6] = 'openblas, T = 128'
panel_columns[6] = 3; panel_rows[6] = 2; panel_x[6] = '64 128 256 '; panel_y[6] = '1 8 '
columns_most = 3
rows_most = 2
range = 2
clipped = 1
y_label = 'batch B'

# What all pictures share: colours, marks, terminals, and positions on the canvas.

# Colours, marks and dashes of lines. Colours 1 to 7 are from Okabe & Ito, Color Universal Design
# (2008), which every colour vision can tell apart; 8 is for the reference; 9 to 12, of the
# frameworks, are from Paul Tol's scheme "muted" (2021).
array line_color[12] = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', \
                        '#e69f00', '#56b4e9', '#000000', '#7f7f7f', \
                        '#882255', '#332288', '#999933', '#44aa99']
array line_mark[10] = [7, 5, 9, 13, 11, 15, 4, 6, 8, 12]
array line_dash[4] = [1, 2, 3, 4]

ink = '#222222'
faint = '#6b6b6b'
hair = '#e3e3e3'

set encoding utf8
set samples 2

# Pixels of the canvas, from its top left, as gnuplot's screen coordinates.
across(px) = px / real(width)
down(px) = 1 - px / real(height)

# The width that the words at the top need; the factors are widths of a letter in pixels.
larger(a, b) = a > b ? a : b
letters = larger(strlen(reading), strlen(reading_more))
words_width = 50 + int(larger(11.6 * strlen(heading), larger(7.5 * letters, 590)))

# Room for the words: above the panels, and below.
head = reading_more eq '' ? 70 : 86
foot = 34

# A panel's column and row, from 0.
column_of(panel) = (panel - 1) % columns
row_of(panel) = (panel - 1) / columns

# The words above and below all panels, once per picture.
small_font = 'sans-serif,9'
put_words = "set label heading at screen across(20), down(24) left font heading_font tc rgb ink;" \
          . "set label reading at screen across(20), down(46) left tc rgb faint;" \
          . "set label reading_more at screen across(20), down(62) left tc rgb faint;" \
          . "set label machine at screen across(20), down(height - 26) left font small_font tc rgb faint;" \
          . "set label program at screen across(20), down(height - 12) left font small_font tc rgb faint;"

# The terminal svg copies a font's name into the picture, ':Bold' included, which no viewer understands; so
# the weight is given as a separate attribute.
svg_bold = 'sans-serif" font-weight="bold,15'
set_format = "if (format eq 'png') { eval set_png } else { eval set_svg }"
set_svg = "heading_font = svg_bold;" \
        . "set terminal svg size width, height noenhanced font 'sans-serif,11' background 'white';" \
        . "set output name.'.svg'"
set_png = "heading_font = 'sans-serif:Bold,15';" \
        . "set terminal pngcairo size 2 * width, 2 * height noenhanced font 'sans-serif,11'" \
        . " fontscale 2 linewidth 2 pointscale 2 background 'white';" \
        . "set output name.'.png'"

# Labels of axes in powers of two; at most about seven ticks have one.
log2(v) = log(v) / log(2)
exponent_low(v) = int(ceil(log2(v) - 1e-9))
exponent_high(v) = int(floor(log2(v) + 1e-9))
step_of(low, high) = (exponent_high(high) - exponent_low(low)) / 7 + 1
digits = '⁰ ¹ ² ³ ⁴ ⁵ ⁶ ⁷ ⁸ ⁹'
raised(n) = (n > 9 ? raised(n / 10) : '').word(digits, n % 10 + 1)
power_label(e) = e < -9 ? '2⁻'.raised(-e) : e > 13 ? '2'.raised(e) : \
                 e < 0 ? sprintf('1/%d', 2 ** -e) : sprintf('%d', 2 ** e)

# The position of the k-th entry in the legend, whose columns are legend_width pixels wide.
legend_at(k) = 20 + ((k - 1) % legend_columns) * legend_width
legend_down(k) = head + 2 + ((k - 1) / legend_columns) * 18
put_legend = "do for [k = 1 : words(legend)] {" \
           . "s = int(word(legend, k)); lx = legend_at(k); ly = legend_down(k);" \
           . "set arrow from screen across(lx), down(ly) to screen across(lx + 30), down(ly) nohead" \
           . " lc rgb line_color[series_color[s]] lw 1.8 dt line_dash[series_dash[s]];" \
           . "set label '' at screen across(lx + 15), down(ly)" \
           . " point pt line_mark[series_mark[s]] ps 0.8 lc rgb line_color[series_color[s]];" \
           . "set label series_name[s] at screen across(lx + 38), down(ly) left tc rgb ink }"

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

# States of a cell, column 6 of the data: 0 speed-up, 1 did not run, 2 failed, 3 no baseline,
# 4 no row.
array state_fill[4] = ['#e4e4e4', '#555555', '#ffffff', '#ffffff']
state_color(s) = s == 2 ? 0xffffff : 0x6a6a6a

pitch = columns_most * cell_width + gap_across
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
        set lmargin at screen across(x0)
        set rmargin at screen across(x0 + panel_columns[panel] * cell_width)
        set tmargin at screen down(y0)
        set bmargin at screen down(y0 + panel_rows[panel] * cell_height)
        set xrange [-0.5 : panel_columns[panel] - 0.5]
        set yrange [-0.5 : panel_rows[panel] - 0.5]
        set xtics () nomirror scale 0 offset 0, 0.3
        do for [k = 1 : panel_columns[panel]] {
            set xtics add (word(panel_x[panel], k) k - 1)
        }
        set ytics () nomirror scale 0 offset 0.5, 0
        do for [k = 1 : panel_rows[panel]] {
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
            set label '= tied: intervals overlap     × failed     grey: did not run     – not in this run' \
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
