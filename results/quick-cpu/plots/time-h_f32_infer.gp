# Draws time-h_f32_infer.svg and time-h_f32_infer.png from time-h_f32_infer.dat. Edit it as you like, then run in this
# folder: gnuplot time-h_f32_infer.gp
reset session
name = 'time-h_f32_infer'
formats = 'svg png'
words = 1
machine = 'AMD EPYC, 2 threads, 23.5 GiB, Linux 6.18.44-fc-v657 x86_64'
program = 'bench-lstm 0.1.0 (7a704144d776), run of 2026-11-22'
heading = 'LSTM inference, f32: time per step over hidden size H'
reading = 'Lower is better. The median time of a call divided by T; bars show its 95 % interval.'
reading_more = 'A gap is a case without a time.'
x_label = 'hidden size H'
panels = 4
columns = 2
array series_name[15] = ['cpu_ref', 'cpu_simd', 'cuda_naive', 'cuda_step', 'cudnn', 'cudnn:persist_dynamic', 'cudnn:persist_static', 'cudnn:small_h', 'cudnn:standard', 'fused', 'fused:cluster', 'fused:grid', 'fused:step', 'onednn', 'openblas']
array series_color[15] = [8, 2, 5, 7, 1, 1, 1, 1, 1, 4, 4, 4, 4, 3, 6]
array series_mark[15] = [8, 2, 5, 7, 1, 4, 7, 10, 3, 4, 7, 10, 3, 3, 6]
array series_dash[15] = [1, 1, 1, 1, 1, 2, 3, 4, 1, 1, 2, 3, 4, 1, 1]
legend = '1 2 14 15'
legend_width = 124
legend_columns = 5
x_low = 64.0
x_high = 256.0
low = 271.16800000000001
high = 261076.578125
has_lower_bound = 1
y_label = 'time per step, µs'
unit_size = 1000.0
x_values = ''
array panel_title[4]
array panel_first[4]
array panel_series[4]
panel_title[1] = 'T = 32, B = 1'; panel_first[1] = 0; panel_series[1] = '1 2 14 15'
panel_title[2] = 'T = 32, B = 8'; panel_first[2] = 4; panel_series[2] = '1 2 14 15'
panel_title[3] = 'T = 128, B = 1'; panel_first[3] = 8; panel_series[3] = '1 2 14 15'
panel_title[4] = 'T = 128, B = 8'; panel_first[4] = 12; panel_series[4] = '1 2 14 15'

# What all pictures share: colours, marks, terminals, and positions on the canvas.
#
# formats lists what to draw: svg, png, and narrow, which is an SVG with one column of panels for
# small screens. words is 1 when heading and small print belong into the picture, and 0 when a web
# page shows them beside it.

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
words_width = words ? 50 + int(larger(11.6 * strlen(heading), larger(7.5 * letters, 590))) : 0

# Room for the words: above the panels, and below.
head = words ? (reading_more eq '' ? 70 : 86) : 10
foot = words ? 34 : 4

# A panel's column and row, from 0. across_count is columns, or 1 in the narrow form.
column_of(panel) = (panel - 1) % across_count
row_of(panel) = (panel - 1) / across_count

# The words above and below all panels, once per picture.
small_font = 'sans-serif,9'
put_words = !words ? '' : "set label heading at screen across(20), down(24) left font heading_font tc rgb ink;" \
          . "set label reading at screen across(20), down(46) left tc rgb faint;" \
          . "set label reading_more at screen across(20), down(62) left tc rgb faint;" \
          . "set label machine at screen across(20), down(height - 26) left font small_font tc rgb faint;" \
          . "set label program at screen across(20), down(height - 12) left font small_font tc rgb faint;"

# gnuplot 5 copies a font's name into the SVG, ':Bold' included, which no viewer understands; so there
# the weight is given as a separate attribute.
svg_bold = GPVAL_VERSION < 6 ? 'sans-serif" font-weight="bold,15' : 'sans-serif:Bold,15'
set_format = "if (format eq 'png') { eval set_png } else { eval set_svg }"
set_svg = "heading_font = svg_bold;" \
        . "set terminal svg size width, height noenhanced font 'sans-serif,11' background 'white';" \
        . "set output name.(format eq 'svg' ? '' : '-'.format).'.svg'"
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
legend_at(k) = 20 + ((k - 1) % legend_across) * legend_width
legend_down(k) = head + 2 + ((k - 1) / legend_across) * 18
put_legend = "do for [k = 1 : words(legend)] {" \
           . "s = int(word(legend, k)); lx = legend_at(k); ly = legend_down(k);" \
           . "set arrow from screen across(lx), down(ly) to screen across(lx + 30), down(ly) nohead" \
           . " lc rgb line_color[series_color[s]] lw 1.8 dt line_dash[series_dash[s]];" \
           . "set label '' at screen across(lx + 15), down(ly)" \
           . " point pt line_mark[series_mark[s]] ps 0.8 lc rgb line_color[series_color[s]];" \
           . "set label series_name[s] at screen across(lx + 38), down(ly) left tc rgb ink }"

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
