# Draws latency_f32_infer_L2_stream.svg and latency_f32_infer_L2_stream.png from latency_f32_infer_L2_stream.dat. Edit it as you like, then run in this
# folder: gnuplot latency_f32_infer_L2_stream.gp
reset session
name = 'latency_f32_infer_L2_stream'
machine = 'AMD EPYC, 2 threads, 23.5 GiB, Linux 6.18.44-fc-v669 x86_64'
program = 'bench-lstm 0.1.0 (a6b86f0f4ea0), run of 2026-11-28'
heading = 'LSTM inference, f32, 2 layers, stream: latency over percentile'
reading_more = 'A line ends where the calls are too few to tell.'
reading = 'Lower is better. So many calls of the stream took at most so long; bars show 95 % intervals.'
panels = 1
columns = 1
array panel_title[1]
array series_name[4]
array series_color[4]
array series_mark[4]
array series_dash[4]
series_name[1] = 'cpu_simd'
series_color[1] = 2; series_mark[1] = 2; series_dash[1] = 1
series_name[2] = 'onednn'
series_color[2] = 3; series_mark[2] = 3; series_dash[2] = 1
series_name[3] = 'onnxruntime'
series_color[3] = 11; series_mark[3] = 1; series_dash[3] = 1
series_name[4] = 'pytorch'
series_color[4] = 9; series_mark[4] = 9; series_dash[4] = 1
x_label = 'percentile'
y_label = 'latency of a call'
unit = 'time'
lines = 1
instances = 0
x_values = '2 10 100 1000 '
x_labels = '50 90 99 99.9'
precision_names = ''
precision_errors = ''
array panel_first[1]
array panel_series[1]
panel_title[1] = 'T = 50, B = 1, H = 100'; panel_first[1] = 0; panel_series[1] = '1 2 3 4 '

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

# Lines over one size, one panel per set of constant sizes, with a dotted line for the lower bound. Where
# lines is 0: a mark per case in one panel, a + at the lower bound, and a dashed line at the best rate or at
# a speed-up of 1; empty lines in the data keep the marks apart. Data: x, y, its interval, case, y at the lower bound, and
# instances, which are written beside the marks where x is their throughput. y is drawn in units of unit_size.

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
x_low = X_min
x_high = X_max
low = LOW_min
high = HIGH_max
has_lower_bound = BOUND_max > 0
is_error = words(precision_names) > 0
reference = is_error ? 1 : lines ? 0 : Y_max

# A unit that suits the values.
units = unit eq 'time' ? 'ns µs ms s' : unit eq 'bytes' ? 'B KiB MiB GiB' : ''
unit_step = unit eq 'bytes' ? 1024.0 : 1000.0
order = int(floor(log(sqrt(low) * sqrt(high) / 500) / log(unit_step))) + 1
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

y_low = low / unit_size / pad
y_high = high / unit_size * (lines ? pad : 1.6)
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
    set xrange [x_low / x_pad : x_high * x_pad]
    set yrange [y_low : y_high]
    set grid back lt 1 lc rgb hair lw 0.8
    set tics nomirror scale 0.4 tc rgb ink
    unset key

    if (lines) { set xtics () nomirror } else { set xtics nomirror format is_error ? '%.0e' : '%g' }
    if (instances) { # calls per second, as round numbers
        do for [d = int(floor(log10(x_low))) : int(ceil(log10(x_high)))] {
            do for [m in (x_high / x_low > 8 ? '1' : x_high / x_low > 3 ? '1 2 3 5 7' : '1 1.2 1.5 2 2.5 3 4 5 6 8')] {
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
