import { cost as costOf, costTitle, count, duration, text, units } from '../values.ts';
import { leftOut, query, type Report, SHOWN } from './report.ts';

/** Those that something happened in: an old one whose runs are of this week is in it, with all that it has cost. */
const VIEW = `from reporting.cost_by_initiative
  where organization_id = $1::uuid and (coalesce(last_run_at, created_at) at time zone $3)::date >= $2::date`;

export const cost: Report = {
  rows: (organization) =>
    query(`select * ${VIEW} order by known_cost_minor_units desc, created_at, initiative_id`, organization),
  async sections({ session, organization, currency }) {
    // One inside another is counted in it. The sums are of all, also of those that are not shown.
    const rows = await session.rows(
      query(
        `select identifier, title, status, tasks, tasks_completed, runs, runs_with_unknown_cost, known_cost_minor_units,
          input_tokens + output_tokens as tokens, run_seconds, count(*) over () as all_initiatives,
          sum(runs) over () as all_runs, sum(runs_with_unknown_cost) over () as all_unknown,
          sum(known_cost_minor_units) over () as all_known, sum(input_tokens + output_tokens) over () as all_tokens,
          sum(run_seconds) over () as all_seconds
        ${VIEW} and depth = 0 order by known_cost_minor_units desc, created_at, initiative_id limit ${SHOWN}`,
        organization,
      ),
    );
    const [all] = rows;
    if (all === undefined) return [];
    const [runs, unknownRuns] = [count(all, 'all_runs'), count(all, 'all_unknown')];
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
            ...rows.map((row) => [
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
              duration(count(all, 'all_seconds')),
              text(all, 'all_tokens'),
              costOf({ known: units(all, 'all_known'), unknownRuns }, runs, currency),
            ],
          ],
        },
        notes: [
          ...leftOut(count(all, 'all_initiatives'), 'initiatives'),
          'with all that is below them, and all that they have cost since they were made',
          ...(unknownRuns > 0 ? [`≥ and unknown: the cost of ${unknownRuns} of ${runs} runs was not reported`] : []),
        ],
      },
    ];
  },
};
