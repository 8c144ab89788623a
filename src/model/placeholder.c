void sonde_model_placeholder(void); void sonde_model_placeholder(void) {}
