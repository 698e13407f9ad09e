# Draws speedup-b_f16_infer_graph.svg and speedup-b_f16_infer_graph.png from speedup-b_f16_infer_graph.dat. Edit it as you like, then run in this
# folder: gnuplot speedup-b_f16_infer_graph.gp
reset session
name = 'speedup-b_f16_infer_graph'
machine = 'NVIDIA H100 80GB HBM3; Intel(R) Xeon(R) Processor, 16 threads, 126 GiB, Linux 6.18.44-fc-v657-gpu x86_64'
program = 'bench-lstm 0.1.0 (28f12d31b3fa), run of 2026-11-27'
heading = 'LSTM inference, f16, CUDA graph: speed-up over cudnn:persist_static by B and H'
reading_more = ''
reading = 'Higher is better (blue). The median time of cudnn:persist_static divided by that of the panel''s implementation.'
panels = 7
columns = 7
array panel_title[7]
array series_name[9]
array series_color[9]
array series_mark[9]
array series_dash[9]
series_name[1] = 'cuda_naive'
series_color[1] = 5; series_mark[1] = 5; series_dash[1] = 1
series_name[2] = 'cuda_step'
series_color[2] = 7; series_mark[2] = 7; series_dash[2] = 1
series_name[3] = 'cudnn:persist_static'
series_color[3] = 1; series_mark[3] = 1; series_dash[3] = 1
series_name[4] = 'cudnn:small_h'
series_color[4] = 1; series_mark[4] = 4; series_dash[4] = 2
series_name[5] = 'cudnn:standard'
series_color[5] = 1; series_mark[5] = 7; series_dash[5] = 3
series_name[6] = 'fused'
series_color[6] = 4; series_mark[6] = 4; series_dash[6] = 1
series_name[7] = 'fused:cluster'
series_color[7] = 4; series_mark[7] = 7; series_dash[7] = 2
series_name[8] = 'fused:grid'
series_color[8] = 4; series_mark[8] = 10; series_dash[8] = 3
series_name[9] = 'fused:step'
series_color[9] = 4; series_mark[9] = 3; series_dash[9] = 4
array panel_x[7]
array panel_y[7]
panel_title[1] = 'cuda_step, T = 128'
panel_x[1] = '128 256 512 768 1024 '
panel_y[1] = '1 8 16 32 64 '
panel_title[2] = 'cudnn:small_h, T = 128'
panel_x[2] = '128 256 512 768 1024 '
panel_y[2] = '1 8 16 32 64 '
panel_title[3] = 'cudnn:standard, T = 128'
panel_x[3] = '128 256 512 768 1024 '
panel_y[3] = '1 8 16 32 64 '
panel_title[4] = 'fused, T = 128'
panel_x[4] = '128 256 512 768 1024 '
panel_y[4] = '1 8 16 32 64 '
panel_title[5] = 'fused:cluster, T = 128'
panel_x[5] = '128 256 512 768 1024 '
panel_y[5] = '1 8 16 32 64 '
panel_title[6] = 'fused:grid, T = 128'
panel_x[6] = '128 256 512 768 1024 '
panel_y[6] = '1 8 16 32 64 '
panel_title[7] = 'fused:step, T = 128'
panel_x[7] = '128 256 512 768 1024 '
panel_y[7] = '1 8 16 32 64 '
range = 3
clipped = 0
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
smaller(a, b) = a < b ? a : b
letters = larger(strlen(reading), strlen(reading_more))
words_width = 50 + int(larger(11.6 * strlen(heading), larger(7.5 * letters, 590)))

# Room for the words: above the panels, and below.
head = reading_more eq '' ? 70 : 86
foot = 34

# A panel's column and row, from 0.
column_of(panel) = (panel - 1) % columns
row_of(panel) = (panel - 1) / columns

# Places the next panel, whose top left is at the pixel x0, y0.
place_panel = "set lmargin at screen across(x0); set rmargin at screen across(x0 + panel_width);" \
            . "set tmargin at screen down(y0); set bmargin at screen down(y0 + panel_height)"

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
