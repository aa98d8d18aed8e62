import { plain } from '../terminal.ts';
import type { ReportName } from './options.ts';
import { reports, type Section } from './reports/index.ts';
import type { Organization, Session } from './session.ts';
import { tableLines } from './table.ts';

export type ScreenOptions = Readonly<{
  session: Session;
  report: ReportName;
  organizations: readonly Organization[];
  currency: string | undefined;
  /** Of the terminal. */
  columns: number;
  style: (kind: 'bold' | 'dim', text: string) => string;
}>;

function sectionLines({ table, notes = [] }: Section, { columns, style }: ScreenOptions): string[] {
  const [head = '', ...rows] = tableLines(table, columns);
  return ['', style('bold', head), ...rows, ...notes.map((note) => style('dim', note))];
}

/** A section an organization, as text; each is written when it is there. */
export async function* screenText(options: ScreenOptions): AsyncGenerator<string> {
  const { session, report, organizations, currency, style } = options;
  let first = true;
  for (const organization of organizations) {
    const { slug, name, timezone, since, today } = organization;
    const sections = await reports[report].sections({ session, organization, currency });
    const lines = [style('bold', plain(`${name} (${slug}): ${report} from ${since} to ${today}, ${timezone}`))];
    if (sections.length === 0) lines.push('', 'nothing in this time');
    for (const section of sections) lines.push(...sectionLines(section, options));
    yield `${first ? '' : '\n'}${lines.join('\n')}\n`;
    first = false;
  }
  if (organizations.length === 0) yield 'there is no organization that this login may read\n';
}
