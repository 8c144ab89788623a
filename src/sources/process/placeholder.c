void sonde_process_placeholder(void); void sonde_process_placeholder(void) {}
