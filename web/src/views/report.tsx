// SPDX-License-Identifier: Apache-2.0
// The report: what would help first, then every section, with a list of them beside it.
import { useEffect } from "preact/hooks";
import { formatDuration } from "../format";
import type { Advice, Report } from "../report";
import { hrefOf } from "../router";
import { SectionView, idOf, titleOf } from "./section";

function AdviceCard({ advice }: { advice: Advice }) {
  return (
    <li>
      <a href={hrefOf({ view: "report", what: advice.section })}>{advice.sentence}</a>
      {advice.saves_ns !== null && <strong> Saves up to {formatDuration(advice.saves_ns)}.</strong>}
    </li>
  );
}

export function ReportView({ report, what }: { report: Report; what: string }) {
  const sections = report.sections.filter((section) => section.blocks.length);
  const advice = sections.flatMap((section) => section.advice).sort((a, b) => (b.saves_ns ?? -1) - (a.saves_ns ?? -1));

  useEffect(() => {
    if (!what) return;
    const element = document.getElementById(`section-${what}`);
    element?.scrollIntoView({ block: "start" });
    element?.focus({ preventScroll: true });
  }, [what]);
  return (
    <div class="columns">
      <nav aria-label="Sections">
        <ul>
          {sections.filter((section) => titleOf(section)).map((section) => (
            <li key={idOf(section)}>
              <a href={hrefOf({ view: "report", what: idOf(section) })} aria-current={what === idOf(section) ? "true" : undefined}>{titleOf(section)}</a>
            </li>
          ))}
        </ul>
      </nav>
      <main>
        {advice.length > 0 && <section class="help" aria-label="What would help"><h2>What would help</h2><ul>{advice.map((a) => <AdviceCard key={a.id + a.sentence} advice={a} />)}</ul></section>}
        {sections.map((section) => <SectionView key={idOf(section)} section={section} />)}
      </main>
    </div>
  );
}
