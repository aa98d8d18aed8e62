import { bar } from '../bars.ts';
import { count, share, text } from '../values.ts';
import { leftOut, query, type Report, SHOWN, summaryRows } from './report.ts';

export const failures: Report = {
  rows: summaryRows('contract_failures', 'day, evaluator, criterion, agent_profile_key, agent_profile_id'),
  async sections({ session, organization }) {
    const rows = await session.rows(
      query(
        `select evaluator, criterion, sum(checks) as checks, sum(failures) as failures,
          to_char(max(last_failed_at) at time zone $3, 'YYYY-MM-DD HH24:MI') as last_failed
        from reporting.contract_failures where organization_id = $1::uuid and day >= $2::date group by evaluator, criterion order by sum(failures) desc, sum(checks) desc, evaluator, criterion`,
        organization,
      ),
    );
    if (rows.length === 0) return [];
    const most = Math.max(...rows.map((row) => count(row, 'failures')));
    return [
      {
        table: {
          columns: [
            { title: 'criterion', align: 'left', flexible: true },
            { title: 'judged by', align: 'left' },
            { title: 'checked', align: 'right' },
            { title: 'failed', align: 'right' },
            { title: 'share', align: 'right' },
            { title: 'last failed', align: 'left' },
            { title: '', align: 'left' },
          ],
          rows: rows
            .slice(0, SHOWN)
            .map((row) => [
              text(row, 'criterion'),
              text(row, 'evaluator'),
              text(row, 'checks'),
              text(row, 'failures'),
              share(count(row, 'failures'), count(row, 'checks')),
              text(row, 'last_failed'),
              (columns: number) => bar(count(row, 'failures'), most, columns),
            ]),
        },
        notes: leftOut(rows.length, 'criteria'),
      },
    ];
  },
};
