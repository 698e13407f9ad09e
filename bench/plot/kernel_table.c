/* The GPU kernels of a row, printed on the terminal. */
#include "plot/kernel_table.h"

#include <inttypes.h>

#include "plot/table.h"
#include "support/terminal.h"

static void print_sizes(FILE *out, const char *name, const int64_t sizes[3])
{
    fprintf(out, "%s %" PRId64 "x%" PRId64 "x%" PRId64, name, sizes[0], sizes[1], sizes[2]);
}

static void print_kernel(FILE *out, const struct lb_kernel *kernel)
{
    char total[32], longest[32];
    lb_format_ns(kernel->total_ns, total);
    lb_format_ns(kernel->longest_ns, longest);
    fprintf(out, "      %5" PRId64 " x %s\n", kernel->count, kernel->name);
    fprintf(out, "              %s, longest %s; tensor cores: %s; ", total, longest,
            lb_tensor_cores_name(kernel->tensor_cores));
    print_sizes(out, "grid", kernel->grid);
    print_sizes(out, ", block", kernel->block);
    print_sizes(out, ", cluster", kernel->cluster);
    fprintf(out, ", %" PRId64 " registers, %" PRId64 " bytes shared\n", kernel->registers,
            kernel->shared_bytes);
}

void lb_kernels_print(FILE *out, const struct lb_row *row)
{
    const struct lb_kernels *kernels = &row->kernels;
    char label[2 * LB_NAME_SIZE], sentence[160], span[32], gap[32], longest[32];
    lb_kernels_sentence(kernels, sentence, sizeof(sentence));
    if (!sentence[0]) {
        fprintf(out, "    kernels  unknown: %s\n",
                row->kernels_reason[0] ? row->kernels_reason : "not traced");
        return;
    }
    lb_impl_label(&row->c, label);
    lb_format_ns(kernels->span_ns, span);
    lb_format_ns(kernels->gap_ns, gap);
    lb_format_ns(kernels->longest_gap_ns, longest);
    fprintf(out, "    kernels  %s %s\n", label, sentence);
    for (size_t i = 0; i < kernels->count; i++)
        print_kernel(out, &kernels->items[i]);
    fprintf(out, "      of %s, no kernel ran for %s; the longest gap was %s\n", span, gap, longest);
    if (row->warning[0])
        fprintf(out, "      warning: %s\n", row->warning);
}
