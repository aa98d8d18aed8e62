import type { Organization, Query, Row } from '../session.ts';
import { cost as costOf, costTitle, count, duration, text, units } from '../values.ts';
import { leftOut, query, type Report, SHOWN } from './report.ts';

/** Those that something happened in: an old one whose runs are of this week is in it, with all that it has cost. */
const VIEW = `from reporting.cost_by_initiative
  where organization_id = $1::uuid and (coalesce(last_run_at, created_at) at time zone $3)::date >= $2::date`;

/** What no initiative contains, a line for each kind: of runs that ended since the first day. */
const OUTSIDE = `select case kind when 'chat' then 'Chats' else 'Tasks outside of initiatives' end as title,
    sum(runs) as runs, sum(runs_with_unknown_cost) as runs_with_unknown_cost,
    sum(known_cost_minor_units) as known_cost_minor_units,
    case when sum(runs_with_unknown_cost) = 0 then sum(known_cost_minor_units) end as cost_minor_units,
    sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens, sum(tool_calls) as tool_calls,
    sum(run_seconds) as run_seconds
  from reporting.cost_outside_initiatives
  -- The zone is named for the other half of the report; this summary knows its days.
  where organization_id = $1::uuid and day >= $2::date and $3::text is not null
  group by kind`;

/** All lines of a file: initiatives, then what is outside of them, with the columns of initiatives. */
function allRows(organization: Organization): Query {
  return query(
    `select organization_id, initiative_id, identifier, title, status, depth, parent_task_id, root_task_id, tasks,
        tasks_completed, runs, active_runs, runs_with_unknown_cost, known_cost_minor_units, cost_minor_units, input_tokens,
        output_tokens, tool_calls, run_seconds, first_run_at, last_run_at, created_at, completed_at
      from (
        select 1 as part, * ${VIEW}
        union all
        select 2, $1::uuid, null, null, o.title, null, null, null, null, null, null, o.runs, null, o.runs_with_unknown_cost,
          o.known_cost_minor_units, o.cost_minor_units, o.input_tokens, o.output_tokens, o.tool_calls, o.run_seconds, null,
          null, null, null
        from (${OUTSIDE}) o
      ) r (part, organization_id, initiative_id, identifier, title, status, depth, parent_task_id, root_task_id, tasks,
        tasks_completed, runs, active_runs, runs_with_unknown_cost, known_cost_minor_units, cost_minor_units, input_tokens,
        output_tokens, tool_calls, run_seconds, first_run_at, last_run_at, created_at, completed_at)
      order by part, known_cost_minor_units desc, created_at, initiative_id, title`,
    organization,
  );
}

/** Of numbers that the database wrote: none of them is a float on its way. */
const sum = (rows: readonly Row[], name: string): bigint => rows.reduce((all, row) => all + units(row, name), 0n);

function line(row: Row, names: readonly [string, string, string, string], currency: string | undefined): string[] {
  const known = units(row, 'known_cost_minor_units');
  return [
    ...names,
    text(row, 'runs'),
    duration(count(row, 'run_seconds')),
    text(row, 'tokens'),
    costOf({ known, unknownRuns: count(row, 'runs_with_unknown_cost') }, count(row, 'runs'), currency),
  ];
}

export const cost: Report = {
  rows: allRows,
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
    const outside = await session.rows(
      query(
        `select title, runs, runs_with_unknown_cost, known_cost_minor_units, input_tokens + output_tokens as tokens,
          run_seconds from (${OUTSIDE}) o order by title desc`,
        organization,
      ),
    );
    if (rows.length + outside.length === 0) return [];
    const all = rows[0] ?? {};
    const runs = count(all, 'all_runs') + Number(sum(outside, 'runs'));
    const unknownRuns = count(all, 'all_unknown') + Number(sum(outside, 'runs_with_unknown_cost'));
    const seconds = outside.reduce((total, row) => total + count(row, 'run_seconds'), count(all, 'all_seconds'));
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
            ...rows.map((row) =>
              line(
                row,
                [
                  text(row, 'identifier'),
                  text(row, 'title'),
                  text(row, 'status'),
                  `${count(row, 'tasks_completed')} of ${count(row, 'tasks')}`,
                ],
                currency,
              ),
            ),
            ...outside.map((row) => line(row, ['', text(row, 'title'), '', ''], currency)),
            [
              'all',
              '',
              '',
              '',
              String(runs),
              duration(seconds),
              String(units(all, 'all_tokens') + sum(outside, 'tokens')),
              costOf(
                { known: units(all, 'all_known') + sum(outside, 'known_cost_minor_units'), unknownRuns },
                runs,
                currency,
              ),
            ],
          ],
        },
        notes: [
          ...leftOut(count(all, 'all_initiatives'), 'initiatives'),
          'initiatives with all that is below them, and all that they have cost since they were made',
          ...(outside.length > 0 ? [`outside of them: what ended since ${organization.since}`] : []),
          ...(unknownRuns > 0 ? [`≥ and unknown: the cost of ${unknownRuns} of ${runs} runs was not reported`] : []),
        ],
      },
    ];
  },
};
