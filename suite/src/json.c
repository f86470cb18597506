#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static void before_value(struct json *json)
{
    if (json->separate)
        putc(',', json->file);
    json->separate = true;
}

void json_open(struct json *json, char bracket)
{
    before_value(json);
    putc(bracket, json->file);
    json->separate = false;
}

void json_close(struct json *json, char bracket)
{
    putc(bracket, json->file);
    json->separate = true;
}

void json_newline(struct json *json)
{
    putc('\n', json->file);
    json->separate = false;
}

/* Length of the valid UTF-8 sequence that starts here, or 0 (table 3-7 of the Unicode standard). */
static int utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    int length = 0;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        length = 2;
    else if (s[0] >= 0xe0 && s[0] <= 0xef)
        length = 3;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        length = 4;
    unsigned char least = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char most = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    for (int i = 1; i < length; i++) {
        if (s[i] < least || s[i] > most)
            return 0;
        least = 0x80;
        most = 0xbf;
    }
    return length;
}

static void put_ascii(FILE *file, unsigned char c)
{
    if (c == '"' || c == '\\')
        fprintf(file, "\\%c", c);
    else if (c < 0x20 || c == 0x7f)
        fprintf(file, "\\u%04x", c);
    else
        putc(c, file);
}

static void put_text(FILE *file, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    putc('"', file);
    while (*s != '\0') {
        int length = utf8_length(s);
        if (length == 0)
            fputs("\\ufffd", file);
        else if (length == 1)
            put_ascii(file, *s);
        else
            fwrite(s, 1, (size_t)length, file);
        s += length > 0 ? length : 1;
    }
    putc('"', file);
}

void json_key(struct json *json, const char *key)
{
    before_value(json);
    put_text(json->file, key);
    putc(':', json->file);
    json->separate = false;
}

void json_string(struct json *json, const char *text)
{
    before_value(json);
    put_text(json->file, text);
}

void json_number(struct json *json, double number)
{
    if (!isfinite(number)) {
        json_null(json);
        return;
    }
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    before_value(json);
    fputs(text, json->file);
}

void json_integer(struct json *json, int64_t number)
{
    before_value(json);
    fprintf(json->file, "%" PRId64, number);
}

void json_bool(struct json *json, bool value)
{
    before_value(json);
    fputs(value ? "true" : "false", json->file);
}

void json_null(struct json *json)
{
    before_value(json);
    fputs("null", json->file);
}

void json_key_string(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json, text);
}

void json_key_number(struct json *json, const char *key, double number)
{
    json_key(json, key);
    json_number(json, number);
}

void json_key_integer(struct json *json, const char *key, int64_t number)
{
    json_key(json, key);
    json_integer(json, number);
}

void json_key_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

void json_key_numbers(struct json *json, const char *key, const double *numbers, size_t count)
{
    json_key(json, key);
    json_open(json, '[');
    for (size_t i = 0; i < count; i++)
        json_number(json, numbers[i]);
    json_close(json, ']');
}
