import { bar } from '../bars.ts';
import { duration, seconds, text } from '../values.ts';
import { query, type Report, summaryRows } from './report.ts';

/** Over the whole time, from the requests themselves: percentiles of days do not add up. */
const BY_PROFILE = `
  select p.name, q.kind, count(*) as starts, max(q.queue_wait_seconds) as longest_seconds,
    percentile_cont(array[0.5, 0.9, 0.99]) within group (order by q.queue_wait_seconds) as percentiles
  from reporting.run_requests q
  join reporting.agent_profiles p on p.organization_id = q.organization_id and p.agent_profile_id = q.agent_profile_id
  where q.organization_id = $1::uuid and (q.first_started_at at time zone $3)::date >= $2::date
  group by p.agent_profile_id, p.name, q.kind order by starts desc, p.name, q.kind`;

export const queue: Report = {
  rows: summaryRows('queue_waits', 'day, kind, agent_profile_key, agent_profile_id'),
  async sections({ session, organization }) {
    const rows = await session.rows(query(BY_PROFILE, organization));
    if (rows.length === 0) return [];
    const percentile = (row: (typeof rows)[number], index: number) =>
      Number((row['percentiles'] ?? '').slice(1, -1).split(',')[index]);
    const most = Math.max(...rows.map((row) => percentile(row, 1)));
    return [
      {
        table: {
          columns: [
            { title: 'profile', align: 'left', flexible: true },
            { title: 'for', align: 'left' },
            { title: 'starts', align: 'right' },
            { title: 'p50', align: 'right' },
            { title: 'p90', align: 'right' },
            { title: 'p99', align: 'right' },
            { title: 'longest', align: 'right' },
            { title: '', align: 'left' },
          ],
          rows: rows.map((row) => [
            text(row, 'name'),
            text(row, 'kind'),
            text(row, 'starts'),
            ...[0, 1, 2].map((index) => duration(percentile(row, index))),
            duration(seconds(row, 'longest_seconds')),
            (columns: number) => bar(percentile(row, 1), most, columns),
          ]),
        },
        notes: [`from the making of a request to its first start; bars: p90 (nine of ten waited at most so long)`],
      },
    ];
  },
};
