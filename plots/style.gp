# What all pictures share: colours, marks, terminals, and where things are on the canvas.

# Lines. 1 to 7 are of Okabe & Ito, Color Universal Design (2008), which people of every colour
# vision can tell apart; 8 is for the reference.
array line_color[8] = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', \
                       '#e69f00', '#56b4e9', '#000000', '#7f7f7f']
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

# At least as wide as the words at the top; the factors are widths of a letter in pixels.
larger(a, b) = a > b ? a : b
words_width = 50 + int(larger(10.5 * strlen(heading), larger(7.0 * strlen(reading), 590)))

# A panel's place: column and row from 0.
column_of(panel) = (panel - 1) % columns
row_of(panel) = (panel - 1) / columns

# What is written above and below all panels; once a picture.
small_font = 'sans-serif,9'
put_words = "set label heading at screen across(20), down(24) left font heading_font tc rgb ink;" \
          . "set label reading at screen across(20), down(46) left tc rgb faint;" \
          . "set label machine at screen across(20), down(height - 26) left font small_font tc rgb faint;" \
          . "set label program at screen across(20), down(height - 12) left font small_font tc rgb faint;"

# gnuplot 5 writes a font's name into an SVG as it stands, ':Bold' too, which no reader understands:
# there the weight goes in as an attribute of its own.
svg_bold = GPVAL_VERSION < 6 ? 'sans-serif" font-weight="bold,15' : 'sans-serif:Bold,15'
set_svg = "heading_font = svg_bold;" \
        . "set terminal svg size width, height noenhanced font 'sans-serif,11' background 'white';" \
        . "set output name.'.svg'"
set_png = "heading_font = 'sans-serif:Bold,15';" \
        . "set terminal pngcairo size 2 * width, 2 * height noenhanced font 'sans-serif,11'" \
        . " fontscale 2 linewidth 2 pointscale 2 background 'white';" \
        . "set output name.'.png'"
