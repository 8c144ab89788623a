// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app";
import { httpSource } from "./http";
import { embeddedSource } from "./source";
import type { Embedded } from "./source";
import "./style.css";

const root = document.getElementById("page")!;
const data = document.getElementById("sonde-data");

async function start(): Promise<void> {
  const source = data ? embeddedSource(JSON.parse(data.textContent ?? "") as Embedded) : await httpSource();
  render(<App source={source} />, root);
}

start().catch((error: unknown) => { root.textContent = error instanceof Error ? error.message : String(error); });
