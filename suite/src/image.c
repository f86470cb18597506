#include "image.h"

#include <string.h>

#include "element.h"

void image_forget(struct image *image)
{
    image->state = IMAGE_NONE;
}

static void make(struct image *image, const struct routine *routine, const struct exchange *exchange,
                 const struct pattern *pattern)
{
    size_t count = (size_t)routine->receives(exchange);
    for (size_t i = 0; i < count; i++)
        element_put(exchange, image->elements, i, routine->expected(pattern, exchange, i));
    image->state = IMAGE_KNOWN;
}

static bool is_as_made(const struct image *image, const struct routine *routine, const struct exchange *exchange,
                       const struct pattern *pattern)
{
    size_t count = (size_t)routine->receives(exchange);
    for (size_t i = 0; i < count; i++) {
        double made = routine->expected(pattern, exchange, i), kept = element_get(exchange, image->elements, i);
        if (memcmp(&made, &kept, sizeof made) != 0)
            return false;
    }
    return true;
}

/* A sum grows by what the turn adds, once for each addend: all elements alike. Other data changes as what is sent. */
static void change(struct image *image, const struct routine *routine, const struct exchange *exchange,
                   const struct pattern *from, const struct pattern *to)
{
    size_t count = (size_t)routine->receives(exchange);
    if (from->data == DATA_SUMS && count > 0)
        pattern_raise(routine->expected(to, exchange, 0) - image->elements[0], image->elements, count);
    else
        pattern_renew(from, to, image->elements, count);
}

void image_turn(struct image *image, const struct routine *routine, const struct exchange *exchange,
                const struct pattern *from, const struct pattern *to)
{
    if (image->elements == NULL || image->state == IMAGE_UNFIT)
        return;
    if (image->state == IMAGE_NONE) {
        make(image, routine, exchange, to);
        return;
    }
    change(image, routine, exchange, from, to);
    if (image->state == IMAGE_KNOWN)
        image->state = is_as_made(image, routine, exchange, to) ? IMAGE_PROVEN : IMAGE_UNFIT;
}

bool image_matches(const struct image *image, const double *received, size_t bytes)
{
    bool usable = image->state == IMAGE_KNOWN || image->state == IMAGE_PROVEN;
    return image->elements != NULL && usable && memcmp(received, image->elements, bytes) == 0;
}
