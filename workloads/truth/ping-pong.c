/* Two processes that send a byte back and forth over two pipes. ping-pong [ROUNDS] */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    unsigned rounds = count > 1 ? (unsigned)strtoul(words[1], NULL, 10) : 1000;
    int there[2], back[2];
    char byte = 0;
    if (pipe(there) || pipe(back))
        return 1;
    pid_t child = fork();
    if (child < 0)
        return 1;
    for (unsigned round = 0; round < rounds; round++) {
        if (child == 0) {
            if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
                return 1;
        } else if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) {
            return 1;
        }
    }
    int status = 0;
    if (child > 0 && wait(&status) < 0)
        return 1;
    return status != 0;
}
