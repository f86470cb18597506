/* What an MPI library is and how it is set, for people who hold two against each other. */
#ifndef MPICOST_FACTS_H
#define MPICOST_FACTS_H

/* Adds one record to the file that PLUMBLINE_FACTS names: the library, its standard and the name it is linked by;
 * every loaded object with its build ID; every control variable of MPI_T with its value; the environment. Does
 * nothing if the variable is not set. To be called on rank 0 alone, between MPI_Init and MPI_Finalize. */
void facts_write(void);

#endif
