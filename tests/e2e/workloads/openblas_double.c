/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for OpenBLAS: sonde knows it by the name of its file. It has one thread. */

double sonde_double_dgemm(long rounds);

__attribute__((visibility("default"))) double sonde_double_dgemm(long rounds)
{
	double sum = 0;

	for (long i = 0; i < rounds; i++)
		sum += (double)(i % 7) * 0.5;
	return sum;
}
