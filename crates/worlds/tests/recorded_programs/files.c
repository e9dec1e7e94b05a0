/* Three processes write to files of their own and sync them, and read back what the cache has. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 3, WRITES = 20 };

static void work(const char *folder, int number)
{
	static char page[4096];
	char path[4096];
	int file;

	snprintf(path, sizeof(path), "%s/file-%d", folder, number);
	memset(page, number, sizeof(page));
	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (file < 0)
		_exit(1);
	for (int count = 0; count < WRITES; count++) {
		if (pwrite(file, page, sizeof(page), count * sizeof(page)) != sizeof(page) ||
		    fdatasync(file) || pread(file, page, sizeof(page), 0) != sizeof(page))
			_exit(1);
	}
	_exit(0);
}

int main(int count, char **arguments)
{
	int status, failed = 0;

	if (count < 2)
		return 2;
	for (int number = 0; number < PROCESSES; number++)
		if (!fork())
			work(arguments[1], number);
	while (wait(&status) > 0)
		failed |= status;
	return !!failed;
}
