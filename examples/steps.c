/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps [STEPS]: a program that says what it does. Each step loads a batch and multiplies matrices,
 * as ranges; how large the numbers get is a counter.
 *
 *     cc -O2 examples/steps.c $(pkg-config --cflags --libs sonde) -o steps
 *     sonde record -- ./steps
 *     sonde report --by range sonde.pftrace
 */
#include <sonde/sonde.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE 128

static double left[SIZE][SIZE], right[SIZE][SIZE], product[SIZE][SIZE];

static void load_batch(unsigned seed)
{
	sonde_range_push("load batch");
	for (int i = 0; i < SIZE; i++) {
		for (int j = 0; j < SIZE; j++) {
			seed = seed * 1664525U + 1013904223U;
			left[i][j] = seed / 4294967296.0;
			right[j][i] = 1.0 - left[i][j];
		}
	}
	sonde_range_pop();
}

static double multiply(void)
{
	double sum = 0;

	sonde_range_push("multiply");
	for (int i = 0; i < SIZE; i++) {
		for (int j = 0; j < SIZE; j++) {
			product[i][j] = 0;
			for (int k = 0; k < SIZE; k++)
				product[i][j] += left[i][k] * right[k][j];
			sum += product[i][j];
		}
	}
	sonde_range_pop();
	return sum;
}

int main(int count, char **arguments)
{
	int steps = count > 1 ? atoi(arguments[1]) : 500;
	double sum = 0;

	for (int i = 0; i < steps; i++) {
		sonde_range_push("step");
		load_batch((unsigned)i);
		sum = multiply();
		sonde_counter("sum", sum);
		sonde_range_pop();
		sonde_step("step");
	}
	printf("%d steps, the last sum %.0f\n", steps, sum);
	return 0;
}
