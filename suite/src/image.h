/* What the receive buffer must hold, kept from one turn of the data to the next: then right data is known by one
 * comparison of memory, where each element's value takes several multiplications. What differs from it is looked at
 * element by element, so that an image decides nothing but that data is right. */
#ifndef MPICOST_IMAGE_H
#define MPICOST_IMAGE_H

#include "routine.h"

/* KNOWN: made of each element's value. PROVEN: taken from turn to turn, and the first time found to be as if it were
 * made so. UNFIT: that was not so. */
enum image_state { IMAGE_NONE, IMAGE_KNOWN, IMAGE_PROVEN, IMAGE_UNFIT };

struct image {
    double *elements; /* room for the largest receive buffer; NULL: there is never an image */
    enum image_state state;
};

/* Other data follows, not the next turn of this one. */
void image_forget(struct image *image);

/* The data goes from one turn to another. */
void image_turn(struct image *image, const struct routine *routine, const struct exchange *exchange,
                const struct pattern *from, const struct pattern *to);

/* Whether it is known that what was received is right. */
bool image_matches(const struct image *image, const double *received, size_t bytes);

#endif
