// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import type { Command, Envelope, Job } from "../src/api";
import { LiveFeed } from "../src/live/state";
import { firstValues, parametersOf } from "../src/views/controls";

const parameter = { default: null, choices: [], minimum: null, maximum: null };
const command: Command = {
  name: "generate", description: null, parameters: [
    { ...parameter, name: "tokens", type: "integer", default: 48, minimum: 1, maximum: 4096 }, { ...parameter, name: "rate", type: "number" },
    { ...parameter, name: "model", type: "choice", choices: ["small", "large"] }, { ...parameter, name: "prompt", type: "string", default: "Hi" },
  ],
};

test("a form begins with the defaults, and sends numbers as numbers and nothing for what is empty", () => {
  const values = firstValues(command);
  expect(values).toEqual({ tokens: "48", rate: "", model: "small", prompt: "Hi" });
  expect(parametersOf(command, values)).toEqual({ tokens: 48, model: "small", prompt: "Hi" });
  expect(parametersOf(command, { ...values, rate: "0.5", tokens: "7", prompt: "" })).toEqual({ tokens: 7, rate: 0.5, model: "small" });
});

test("what a message says of a job counts more than the list that was asked for before", () => {
  const feed = new LiveFeed();
  const job = (id: string, state: Job["state"]): Job => ({ id, command: "c", state, capture: null, started_unix_ms: Number(id), exit_status: null, window: null, message: null });
  const message = { v: 1, epoch: "e", seq: 1, t_ms: 0, type: "job", data: job("1", "ended") as unknown } as Envelope;
  feed.take(message);
  feed.takeJobs([job("2", "running"), job("1", "running")]);
  expect([...feed.jobs.values()].map(({ id, state }) => [id, state])).toEqual([["1", "ended"], ["2", "running"]]);
});
