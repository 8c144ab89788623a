// SPDX-License-Identifier: Apache-2.0
// A section of the report: its blocks, in the order of the terminal.
import type { BarsBlock, Block, Section, Table } from "../report";
import { Plots } from "./plot";
import { TableView } from "./table";

// What the list of sections calls it: its heading without what is in parentheses; null: it continues the one before.
export function titleOf(section: Section): string | null {
  const head = section.blocks.find((block) => block.kind === "heading" || block.kind === "title");
  if (!head || !("text" in head)) return null;
  return head.kind === "title" ? "Overview" : head.text.replace(/ \(.*\)$/, "");
}

export const idOf = (section: Section) => section.key ?? section.title ?? section.by ?? "";

// What is left of a section where its advice stands above all: without a heading that has nothing but advice below.
export function withoutAdvice(section: Section): Section {
  let isOnlyAdvice = false;
  const blocks = section.blocks.filter((block, at) => {
    if (block.kind === "heading") isOnlyAdvice = section.blocks[at + 1]?.kind === "advice";
    return !isOnlyAdvice && block.kind !== "advice";
  });
  return { ...section, blocks };
}

function Bars({ block, table }: { block: BarsBlock; table: Table }) {
  const values = table.rows.map((row) => Number(row[0] ?? 0));
  const peak = Math.max(...values, 0);
  if (!(peak > 0)) return null;
  const width = 1000 / values.length;
  const text = `peak ${(peak * block.scale).toFixed(2)} ${block.unit}`;
  return (
    <figure class="bars">
      <figcaption>{block.title}: {text}</figcaption>
      <svg viewBox="0 0 1000 60" preserveAspectRatio="none" role="img" aria-label={`${block.title}, ${text}`}>
        {values.map((value, at) => <rect key={at} x={at * width} width={Math.max(width - 1, 0.5)} y={60 - (60 * value) / peak} height={(60 * value) / peak} />)}
      </svg>
    </figure>
  );
}

function BlockView({ block, section }: { block: Block; section: Section }) {
  switch (block.kind) {
    case "title": return <p class="title">{block.text}</p>;
    case "heading": return <h3>{block.text}</h3>;
    case "sentence": return <p>{block.text}</p>;
    case "advice": return <p class="advice"><span aria-hidden="true">→</span> {block.text}</p>;
    case "lines": return <pre>{block.text}</pre>;
    case "bars": return <Bars block={block} table={section.tables[block.table]!} />;
    case "table": {
      const table = section.tables[block.table]!;
      return <TableView table={table} block={block} name={[idOf(section), table.key].filter(Boolean).join("-")} />;
    }
  }
}

export function SectionView({ section }: { section: Section }) {
  return (
    <section id={`section-${idOf(section)}`} aria-label={titleOf(section) ?? section.summary ?? undefined} tabIndex={-1}>
      {section.blocks.map((block, at) => <BlockView key={at} block={block} section={section} />)}
      <Plots section={section} />
    </section>
  );
}
