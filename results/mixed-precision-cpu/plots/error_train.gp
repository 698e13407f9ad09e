# Draws error_train.svg and error_train.png from error_train.dat. Edit it as you like, then run in this
# folder: gnuplot error_train.gp
reset session
name = 'error_train'
formats = 'svg png'
words = 1
machine = 'AMD EPYC, 2 threads, 23.5 GiB, Linux 6.18.44-fc-v657 x86_64'
program = 'bench-lstm 0.1.0 (7a704144d776), run of 2026-11-22'
heading = 'LSTM training: speed over error'
reading = 'Left and up is better. The fastest median in f32 of the same sizes divided by the median, over'
reading_more = '|result - oracle| / |oracle| of the worst gradient. One mark per case.'
array series_name[6] = ['cpu_simd', 'keras', 'keras:mixed', 'onednn', 'pytorch', 'pytorch:autocast']
array series_color[6] = [2, 10, 10, 3, 9, 9]
array series_mark[6] = [2, 10, 3, 3, 9, 2]
array series_dash[6] = [1, 1, 2, 1, 1, 2]
legend = '1 2 3 4 5 6'
legend_width = 188
legend_columns = 3
precision_names = 'f32 f16 bf16'
precision_errors = '1.47635e-06 0.00129219 0.00673133'
x_low = 3.8578561287362764e-07
x_high = 0.01556357172301108
y_low = 0.028783660216084202
y_high = 1.6301385967383859

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
