import { cost as costOf, costTitle, count, duration, text, units } from '../values.ts';
import { leftOut, query, type Report, SHOWN } from './report.ts';

/** Those that something happened in: an old one whose runs are of this week is in it, with all that it has cost. */
const VIEW = `from reporting.cost_by_initiative
  where organization_id = $1::uuid and (coalesce(last_run_at, created_at) at time zone $3)::date >= $2::date`;

export const cost: Report = {
  rows: (organization) =>
    query(`select * ${VIEW} order by known_cost_minor_units desc, created_at, initiative_id`, organization),
  async sections({ session, organization, currency }) {
    // One inside another is counted in it.
    const rows = await session.rows(
      query(
        `select identifier, title, status, tasks, tasks_completed, runs, runs_with_unknown_cost, known_cost_minor_units,
          input_tokens + output_tokens as tokens, run_seconds
        ${VIEW} and depth = 0 order by known_cost_minor_units desc, created_at, initiative_id`,
        organization,
      ),
    );
    if (rows.length === 0) return [];
    const known = rows.reduce((sum, row) => sum + units(row, 'known_cost_minor_units'), 0n);
    const runs = rows.reduce((sum, row) => sum + count(row, 'runs'), 0);
    const unknownRuns = rows.reduce((sum, row) => sum + count(row, 'runs_with_unknown_cost'), 0);
    const total = rows.reduce((sum, row) => sum + count(row, 'run_seconds'), 0);
    const tokens = rows.reduce((sum, row) => sum + units(row, 'tokens'), 0n);
    return [
      {
        table: {
          columns: [
            { title: '', align: 'left' },
            { title: 'initiative', align: 'left', flexible: true },
            { title: 'status', align: 'left' },
            { title: 'tasks done', align: 'right' },
            { title: 'runs', align: 'right' },
            { title: 'time', align: 'right' },
            { title: 'tokens', align: 'right' },
            { title: costTitle(currency), align: 'right' },
          ],
          rows: [
            ...rows
              .slice(0, SHOWN)
              .map((row) => [
                text(row, 'identifier'),
                text(row, 'title'),
                text(row, 'status'),
                `${count(row, 'tasks_completed')} of ${count(row, 'tasks')}`,
                text(row, 'runs'),
                duration(count(row, 'run_seconds')),
                text(row, 'tokens'),
                costOf(
                  { known: units(row, 'known_cost_minor_units'), unknownRuns: count(row, 'runs_with_unknown_cost') },
                  count(row, 'runs'),
                  currency,
                ),
              ]),
            [
              'all',
              '',
              '',
              '',
              String(runs),
              duration(total),
              String(tokens),
              costOf({ known, unknownRuns }, runs, currency),
            ],
          ],
        },
        notes: [
          ...leftOut(rows.length, 'initiatives'),
          'with all that is below them, and all that they have cost since they were made',
          ...(unknownRuns > 0 ? [`≥ and unknown: the cost of ${unknownRuns} of ${runs} runs was not reported`] : []),
        ],
      },
    ];
  },
};
