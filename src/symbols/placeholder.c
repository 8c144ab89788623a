void sonde_symbols_placeholder(void); void sonde_symbols_placeholder(void) {}
