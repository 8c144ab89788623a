// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system has it.
import { useEffect, useState } from "preact/hooks";

const query = () => window.matchMedia("(prefers-color-scheme: dark)");

export function useDark(): boolean {
  const [isDark, setDark] = useState(() => query().matches);
  useEffect(() => {
    const list = query();
    const changed = () => setDark(list.matches);
    list.addEventListener("change", changed);
    return () => list.removeEventListener("change", changed);
  }, []);
  return isDark;
}
