#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "version") == 0) {
        (void)puts("hooktrail " HOOKTRAIL_VERSION);
        return 0;
    }
    return 2;
}
