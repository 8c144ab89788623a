void sonde_exporters_placeholder(void); void sonde_exporters_placeholder(void) {}
