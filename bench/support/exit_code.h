/* The exit codes of the program, which --help lists. */
#ifndef LB_EXIT_CODE_H
#define LB_EXIT_CODE_H

enum lb_exit {
    LB_EXIT_FINE = 0,
    LB_EXIT_FAILED = 1,       /* a case is wrong or failed, or the run could not be kept */
    LB_EXIT_USAGE = 2,        /* the command line, or a file that it names, is wrong */
    LB_EXIT_REGRESSION = 3,   /* a case is slower or broken */
    LB_EXIT_INCONCLUSIVE = 4, /* --compare: no case could be judged; with --strict, a case is
                                 neither the same nor better */
    LB_EXIT_NOTHING = 5,      /* no case ran, or none has a time to compare */
    LB_EXIT_INCOMPLETE = 6,   /* --merge: a part of what was planned is not in the result */
    LB_EXIT_INTERRUPTED = 130
};

#endif
