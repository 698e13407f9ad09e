/* A fixed amount of work for one CPU, whose time tells how fast the machine is at the moment. It is
 * measured before and after each case, so that runs that follow each other can be compared although
 * the machine's clock or its other users changed in between. */
#ifndef LB_REFERENCE_LOOP_H
#define LB_REFERENCE_LOOP_H

/* The time of the loop in ns: the median of three, which take about 2 ms together. The work must
 * never change: records of all versions hold its times. */
double lb_reference_loop(void);

#endif
