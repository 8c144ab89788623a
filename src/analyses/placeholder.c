void sonde_analyses_placeholder(void); void sonde_analyses_placeholder(void) {}
