/* Output and exit. */
#ifndef BOARD_H
#define BOARD_H

void print(const char *text);
void print_number(unsigned number);
void leave(int code) __attribute__((noreturn));
void stop(const char *why, const char *file, unsigned line) __attribute__((noreturn));

#endif
