// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";
import { App } from "./app";
import { findSource } from "./source";
import "./style.css";

const root = document.getElementById("page")!;
try {
  render(<App source={findSource()} />, root);
} catch (error) {
  root.textContent = error instanceof Error ? error.message : String(error);
}
