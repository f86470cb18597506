/* Writes JSON to a stream, one value after the other. Keys and brackets are the caller's to balance. */
#ifndef MPICOST_JSON_H
#define MPICOST_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *file;
    bool separate; /* a comma belongs before the next key or value */
};

void json_open(struct json *json, char bracket);
void json_close(struct json *json, char bracket);

/* Ends a record of JSON Lines. */
void json_newline(struct json *json);

void json_key(struct json *json, const char *key);

/* Text in UTF-8; a byte that is not part of a valid sequence becomes U+FFFD. */
void json_string(struct json *json, const char *text);

/* The shortest of 15 to 17 digits that reads back as the same number; null if it is not finite. */
void json_number(struct json *json, double number);
void json_integer(struct json *json, int64_t number);
void json_bool(struct json *json, bool value);
void json_null(struct json *json);

/* A key with its value. */
void json_key_string(struct json *json, const char *key, const char *text);
void json_key_number(struct json *json, const char *key, double number);
void json_key_integer(struct json *json, const char *key, int64_t number);
void json_key_bool(struct json *json, const char *key, bool value);
void json_key_numbers(struct json *json, const char *key, const double *numbers, size_t count);

#endif
