# Draws time-h_f32_infer.svg and time-h_f32_infer.png from time-h_f32_infer.dat. Edit it as you like, then run in this
# folder: gnuplot time-h_f32_infer.gp
reset session
name = 'time-h_f32_infer'
machine = 'AMD EPYC, 2 threads, 23.5 GiB, Linux 6.18.44-fc-v657 x86_64'
program = 'bench-lstm 0.1.0 (7a704144d776), run of 2026-11-22'
heading = 'LSTM inference, f32: time per step over hidden size H'
reading = 'Lower is better. The median time of a call divided by T; bars show its 95 % interval.'
reading_more = 'A gap is a case without a time.'
panels = 4
columns = 2
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
x_label = 'hidden size H'
legend = '1 2 14 15 '
legend_width = 124
legend_columns = 5
x_low = 64
x_high = 256
low = 271.16800000000001
high = 261076.578125
has_lower_bound = 1
lines = 1
reference = 0
y_label = 'time per step, µs'
unit_size = 1000.0
x_values = '64 128 256 '
precision_names = ''
precision_errors = ''
array panel_title[4]
array panel_first[4]
array panel_series[4]
panel_title[1] = 'T = 32, B = 1'; panel_first[1] = 0; panel_series[1] = '1 2 14 15 '
panel_title[2] = 'T = 32, B = 8'; panel_first[2] = 4; panel_series[2] = '1 2 14 15 '
panel_title[3] = 'T = 128, B = 1'; panel_first[3] = 8; panel_series[3] = '1 2 14 15 '
panel_title[4] = 'T = 128, B = 8'; panel_first[4] = 12; panel_series[4] = '1 2 14 15 '

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

# Lines over one size, one panel per set of constant sizes, with a dotted line for the lower bound. Where
# lines is 0: a mark per case in one panel, a + at the lower bound, and a dashed line at `reference`; empty
# lines in the data keep the marks apart. Data: x, y, its interval, case, y at the lower bound. y is drawn
# in units of unit_size.

panel_width = lines ? 285 : 560
panel_height = lines ? 190 : 300
gap_across = lines ? 24 : 30
gap_down = 56
left = 84
pad = lines ? 1.25 : 1.3
y_low = low / unit_size / pad
y_high = high / unit_size * (lines ? pad : 1.6)
x_pad = lines ? 1.12 : 1.6
legend_rows = (words(legend) + has_lower_bound + legend_columns - 1) / legend_columns
top = head + 28 + 18 * legend_rows + (words(precision_names) > 0 ? 22 : 0)
down_count = (panels + columns - 1) / columns
width = larger(words_width, left + columns * (panel_width + gap_across))
height = top + down_count * (panel_height + gap_down) + foot
is_error = words(precision_names) > 0

do for [format in 'svg png'] {
    eval set_format
    set multiplot
    set border 3 lc rgb faint
    set logscale x is_error ? 10 : 2
    set logscale y 2
    set xrange [x_low / x_pad : x_high * x_pad]
    set yrange [y_low : y_high]
    set grid back lt 1 lc rgb hair lw 0.8
    set tics nomirror scale 0.4 tc rgb ink
    unset key

    if (lines) { set xtics () nomirror } else { set xtics nomirror format is_error ? '%.0e' : '%g' }
    do for [k = 1 : words(x_values)] { set xtics add (word(x_values, k) real(word(x_values, k))) }

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
        plot for [k = 1 : words(list)] name.'.dat' index first + k - 1 using 1:($6 / unit_size) \
                 with linespoints lc rgb faint lw 1 dt 3 pt (lines ? 0 : 1) ps 0.8, \
             for [k = 1 : words(list)] '' index first + k - 1 \
                 using 1:($3 / unit_size):(0):(($4 - $3) / unit_size) \
                 with vectors heads size graph 0.008, 90 nofilled \
                 lc rgb line_color[series_color[int(word(list, k))]] lw 1.2, \
             for [k = 1 : words(list)] '' index first + k - 1 using 1:($2 / unit_size) \
                 with linespoints lc rgb line_color[series_color[int(word(list, k))]] \
                 lw (lines ? 1.8 : 1.4) dt line_dash[series_dash[int(word(list, k))]] \
                 pt line_mark[series_mark[int(word(list, k))]] ps 0.8
        unset label
        unset arrow
    }
    unset multiplot
    unset output
}
