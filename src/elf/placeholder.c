void sonde_elf_placeholder(void); void sonde_elf_placeholder(void) {}
