/* Runs a fuzz target without libFuzzer: on each file of a corpus, then on mutations of them.
 *
 *   fuzz_NAME FOLDER [ROUNDS [SEED]]
 *
 * Every compiler can build this, so the tests run it everywhere; libFuzzer, which follows the
 * coverage, finds more (preset fuzz). On a fault the input is kept as crash-input in the current
 * folder. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/input.h"

enum { MAX_INPUTS = 256, MAX_SIZE = 1 << 18, MAX_EDITS = 8 };

static struct {
    uint8_t *data;
    size_t size;
} corpus[MAX_INPUTS];
static size_t corpus_count;

static uint8_t input[MAX_SIZE];
static size_t input_size;
static uint64_t state;

/* xorshift64*: a number below limit. Source: Vigna, 2016. */
static size_t draw(size_t limit)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)((state * 0x2545f4914f6cdd1dULL >> 33) % limit);
}

static void keep_input(int signal_number)
{
    int file = open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0 && write(file, input, input_size) == (ssize_t)input_size)
        close(file);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void read_corpus(const char *folder)
{
    DIR *entries = opendir(folder);
    fuzz_require(entries != NULL, "the folder of the corpus can't be read");
    for (struct dirent *entry; (entry = readdir(entries));) {
        char path[4096];
        if (entry->d_name[0] == '.' || corpus_count == MAX_INPUTS)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        fuzz_require(file != NULL, "a file of the corpus can't be read");
        uint8_t *data = malloc(MAX_SIZE);
        fuzz_require(data != NULL, "memory ran out");
        corpus[corpus_count].size = fread(data, 1, MAX_SIZE, file);
        corpus[corpus_count++].data = data;
        fclose(file);
    }
    closedir(entries);
    fuzz_require(corpus_count > 0, "the corpus is empty");
}

/* Puts length bytes at `at` in place of `removed`, as far as there is room. */
static void replace(size_t at, size_t removed, const void *bytes, size_t length)
{
    if (input_size - removed + length > MAX_SIZE)
        return;
    memmove(input + at + length, input + at + removed, input_size - at - removed);
    memmove(input + at, bytes, length);
    input_size += length - removed;
}

static void edit(void)
{
    static const char *const words[] = {"0",
                                        "-1",
                                        "9223372036854775807",
                                        "18446744073709551616",
                                        "1e999",
                                        "null",
                                        "[",
                                        "{",
                                        "\"",
                                        "\\u0000",
                                        "\n",
                                        "/",
                                        "_",
                                        ",",
                                        ":",
                                        "x2",
                                        "(",
                                        "||",
                                        "T1_B1_H1",
                                        "\xff"};
    size_t at = draw(input_size + 1), rest = input_size - at;
    uint8_t byte = (uint8_t)draw(256);
    switch (draw(5)) {
    case 0: replace(at, rest > 0, &byte, 1); break;
    case 1: replace(at, 0, &byte, 1); break;
    case 2: replace(at, draw((rest < 32 ? rest : 32) + 1), "", 0); break;
    case 3: {
        const char *word = words[draw(sizeof(words) / sizeof(words[0]))];
        replace(at, draw((rest < 8 ? rest : 8) + 1), word, strlen(word));
        break;
    }
    default: { /* a part of another input */
        size_t other = draw(corpus_count), size = corpus[other].size, from = draw(size + 1);
        replace(at, 0, corpus[other].data + from, draw((size - from < 64 ? size - from : 64) + 1));
    }
    }
}

static void run_input(size_t index, size_t edits)
{
    input_size = corpus[index].size;
    memcpy(input, corpus[index].data, input_size);
    while (edits-- > 0)
        edit();
    LLVMFuzzerTestOneInput(input, input_size);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER [ROUNDS [SEED]]\n", argv[0]);
        return 2;
    }
    size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    state = argc > 3 ? strtoull(argv[3], NULL, 10) * 2 + 1 : 1;
    static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        signal(faults[i], keep_input);
    read_corpus(argv[1]);
    for (size_t i = 0; i < corpus_count; i++)
        run_input(i, 0);
    for (size_t i = 0; i < rounds; i++)
        run_input(draw(corpus_count), 1 + draw(MAX_EDITS));
    for (size_t i = 0; i < corpus_count; i++)
        free(corpus[i].data);
    printf("%zu inputs and %zu mutations\n", corpus_count, rounds);
    return 0;
}
