/* Appending text, which is never cut within a character; and cleaning it: whatever the bytes are,
 * the result is safe to print on a terminal. */
#include "base/text.h"
#include "tests/helpers/test.h"

static void text_becomes(const char *from, const char *to)
{
    char text[64];
    snprintf(text, sizeof(text), "%s", from);
    assert_int_equal(lb_is_utf8(text), !strchr(to, '?'));
    lb_clean_text(text);
    assert_string_equal(text, to);
}

TEST(text_that_is_fine_stays)
{
    text_becomes("", "");
    text_becomes("hidden 1100 is not a multiple of 128", "hidden 1100 is not a multiple of 128");
    text_becomes("12 µs ≤ 3 × 𝛼", "12 µs ≤ 3 × 𝛼");
    text_becomes("\xc2\xa0|\xf4\x8f\xbf\xbf", "\xc2\xa0|\xf4\x8f\xbf\xbf");
}

TEST(controls_become_spaces)
{
    text_becomes("a\033[31mb\a\r\n\tc\x7f", "a [31mb    c ");
    text_becomes("\xc2\x9b"
                 "31m",
                 " 31m"); /* CSI as one character of C1 */
}

TEST(bytes_of_no_character_become_question_marks)
{
    text_becomes("caf\xe9", "caf?");
    text_becomes("\xc0\xaf", "??");              /* overlong */
    text_becomes("\xed\xa0\x80", "???");         /* a surrogate */
    text_becomes("\xf4\x90\x80\x80", "????");    /* beyond U+10FFFF */
    text_becomes("\xe2\x89", "??");              /* cut */
    text_becomes("\xe2\x89\xe2\x89\xa4", "??≤"); /* cut, and whole */
}

TEST(what_does_not_fit_is_cut_between_characters)
{
    char text[8] = "ab";
    lb_append(text, sizeof(text), "%d%s", 1, "µs");
    assert_string_equal(text, "ab1µs");
    lb_append(text, sizeof(text), "≤≤");
    assert_string_equal(text, "ab1µs"); /* one byte of the next character would fit */
    lb_append(text, sizeof(text), "xyz");
    assert_string_equal(text, "ab1µsx");
}
