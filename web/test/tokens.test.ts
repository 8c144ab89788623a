// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { slowness, tokensOf } from "../src/views/tokens";
import type { Request } from "../src/views/tokens";

const request: Request = { id: "1", pid: 1, begin_ns: 1000, ttft_ns: 500, output_tokens: 3, itl_ns: [10, 20], energy: null };

test("each token begins where the one before came", () => {
  expect(tokensOf(request)).toEqual([
    { number: 1, took_ns: 500, from_ns: 1000 }, { number: 2, took_ns: 10, from_ns: 1500 }, { number: 3, took_ns: 20, from_ns: 1510 },
  ]);
});

test("without a time to first token nothing stands in for it", () => {
  expect(tokensOf({ ...request, ttft_ns: null })).toEqual([{ number: 2, took_ns: 10, from_ns: null }, { number: 3, took_ns: 20, from_ns: null }]);
});

test("slow is from the median to the 99th percentile", () => {
  const spread = { p50: 10, p99: 20 };
  expect([5, 10, 15, 20, 50].map((took_ns) => slowness({ took_ns }, spread))).toEqual([0, 0, 0.5, 1, 1]);
  expect(slowness({ took_ns: 5 }, null)).toBe(0);
});
