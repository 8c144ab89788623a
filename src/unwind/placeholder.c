void sonde_unwind_placeholder(void); void sonde_unwind_placeholder(void) {}
