void sonde_capture_placeholder(void); void sonde_capture_placeholder(void) {}
