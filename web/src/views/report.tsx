// SPDX-License-Identifier: Apache-2.0
// The report: what would help first, then every section, with a list of them beside it.
import { useContext, useEffect } from "preact/hooks";
import type { Advice, Report } from "../report";
import { hrefOf } from "../router";
import type { Place } from "../router";
import { nameOf } from "./names";
import { PlotSource } from "./plot";
import { SectionView, idOf, titleOf, withoutAdvice } from "./section";

// The page of the documentation: the server has it; a page without one names it.
export function DocsLink({ docs }: { docs: string | null }) {
  const isServed = useContext(PlotSource)?.capture.filters ?? false;
  if (!docs) return null;
  return <> <span class="more">More: {isServed ? <a href={`/${docs}`} target="_blank" rel="noopener">{docs}</a> : docs}</span></>;
}

// `href`: of the section that it is from; null: it has nothing more.
function AdviceCard({ advice, href }: { advice: Advice; href: string | null }) {
  return <li>{href ? <a href={href}>{advice.sentence}</a> : advice.sentence}<DocsLink docs={advice.docs} /></li>;
}

// `canAsk`: sections that are not in the report by themselves can be had.
export function ReportView({ report, place, canAsk }: { report: Report; place: Place; canAsk: boolean }) {
  const { what } = place;
  const sections = report.sections.map(withoutAdvice).filter((section) => section.blocks.length);
  const ids = new Set(sections.map(idOf));
  const advice = report.sections.flatMap((section) => section.advice).sort((a, b) => (b.saves_ns ?? -1) - (a.saves_ns ?? -1));
  const shown = new Set(sections.flatMap((section) => (section.by ? [section.by] : [])));
  const href = (section: string) => hrefOf({ view: "report", what: section, query: place.query });

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
            <li key={idOf(section)}><a href={href(idOf(section))} aria-current={what === idOf(section) ? "true" : undefined}>{titleOf(section)}</a></li>
          ))}
        </ul>
        {canAsk && (
          <ul class="more">
            {report.names.filter(({ by }) => !shown.has(by)).map(({ by, summary }) => (
              <li key={by}><a href={hrefOf({ view: "section", what: by, query: place.query })} title={summary}>{nameOf(by)}</a></li>
            ))}
          </ul>
        )}
      </nav>
      <main>
        {advice.length > 0 && <section class="help" aria-label="What would help"><h2>What would help</h2><ul>{advice.map((a) => <AdviceCard key={a.id + a.sentence} advice={a} href={ids.has(a.section) ? href(a.section) : null} />)}</ul></section>}
        {sections.map((section) => <SectionView key={idOf(section)} section={section} />)}
      </main>
    </div>
  );
}

// One section, that the report was asked for by its name.
export function OneSectionView({ report, place }: { report: Report; place: Place }) {
  const sections = report.sections.filter((section) => section.blocks.length);
  return (
    <main>
      <p><a href={hrefOf({ view: "report", query: place.query })}>All sections</a></p>
      {sections.map((section) => <SectionView key={idOf(section)} section={section} />)}
    </main>
  );
}
