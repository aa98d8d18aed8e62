import { bar } from '../bars.ts';
import { count, duration, seconds, text } from '../values.ts';
import { query, type Report, summaryRows } from './report.ts';

/** Over the whole time, from the items themselves: medians of days do not add up. */
const BY_PURPOSE = `
  select kind, purpose, blocking, count(*) as items, count(*) filter (where status = 'open') as open,
    count(*) filter (where status in ('responded', 'acknowledged')) as answered,
    percentile_cont(0.5) within group (order by wait_seconds) filter (where status in ('responded', 'acknowledged'))
      as median_seconds,
    max(wait_seconds) filter (where status in ('responded', 'acknowledged')) as longest_seconds,
    extract(epoch from now() - min(created_at) filter (where status = 'open')) as oldest_open_seconds,
    sum(wait_seconds) as all_seconds
  from reporting.inbox_items
  where organization_id = $1::uuid and (created_at at time zone $3)::date >= $2::date
  group by kind, purpose, blocking order by blocking desc, all_seconds desc, kind, purpose`;

export const waiting: Report = {
  rows: summaryRows('waiting_for_people', 'day, kind, purpose, blocking'),
  async sections({ session, organization }) {
    const rows = await session.rows(query(BY_PURPOSE, organization));
    if (rows.length === 0) return [];
    const most = Math.max(...rows.map((row) => count(row, 'all_seconds')));
    const sum = (name: string) => rows.reduce((total, row) => total + count(row, name), 0);
    return [
      {
        table: {
          columns: [
            { title: 'what', align: 'left' },
            { title: 'why', align: 'left' },
            { title: 'blocks', align: 'left' },
            { title: 'asked', align: 'right' },
            { title: 'open', align: 'right' },
            { title: 'oldest', align: 'right' },
            { title: 'answered', align: 'right' },
            { title: 'median', align: 'right' },
            { title: 'longest', align: 'right' },
            { title: 'together', align: 'right' },
            { title: '', align: 'left' },
          ],
          rows: [
            ...rows.map((row) => [
              text(row, 'kind'),
              text(row, 'purpose').replaceAll('_', ' '),
              row['blocking'] === 't' ? 'yes' : 'no',
              text(row, 'items'),
              text(row, 'open'),
              duration(seconds(row, 'oldest_open_seconds')),
              text(row, 'answered'),
              duration(seconds(row, 'median_seconds')),
              duration(seconds(row, 'longest_seconds')),
              duration(seconds(row, 'all_seconds')),
              (columns: number) => bar(count(row, 'all_seconds'), most, columns),
            ]),
            [
              'all',
              '',
              '',
              String(sum('items')),
              String(sum('open')),
              '',
              String(sum('answered')),
              '',
              '',
              duration(sum('all_seconds')),
            ],
          ],
        },
        notes: ['together, and bars: the time that all of them waited, up to now for the open ones'],
      },
    ];
  },
};
