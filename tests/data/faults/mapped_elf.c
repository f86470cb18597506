/* A library that reads a file of instructions as data, as debuggers and profilers do: its head is mapped, its
 * instructions are not. Loaded with LD_PRELOAD. */
#define _GNU_SOURCE
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((constructor)) static void map_head(void)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr text;
    } file = {
        .head = {.e_type = ET_DYN, .e_phoff = sizeof(Elf64_Ehdr), .e_phnum = 1},
        .text = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 1ul << 40, .p_filesz = 4096},
    };
    memcpy(file.head.e_ident, ELFMAG, SELFMAG);
    int mapped = memfd_create("mapped", 0);
    if (write(mapped, &file, sizeof file) == sizeof file)
        mmap(NULL, sizeof file, PROT_READ, MAP_PRIVATE, mapped, 0);
    close(mapped);
}
