import { bar } from '../bars.ts';
import { count, share, text } from '../values.ts';
import { leftOut, query, type Report, SHOWN, summaryRows } from './report.ts';

export const failures: Report = {
  rows: summaryRows('contract_failures', 'day, evaluator, criterion, agent_profile_key, agent_profile_id'),
  async sections({ session, organization }) {
    const rows = await session.rows(
      query(
        `select evaluator, criterion, sum(checks) as checks, sum(failures) as failures,
          to_char(max(last_failed_at) at time zone $3, 'YYYY-MM-DD HH24:MI') as last_failed, count(*) over () as all_criteria
        from reporting.contract_failures where organization_id = $1::uuid and day >= $2::date
        group by evaluator, criterion
        order by sum(failures) desc, sum(checks) desc, evaluator, criterion limit ${SHOWN}`,
        organization,
      ),
    );
    // The one that failed most comes first.
    const [worst] = rows;
    if (worst === undefined) return [];
    const most = count(worst, 'failures');
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
          rows: rows.map((row) => [
            text(row, 'criterion'),
            text(row, 'evaluator'),
            text(row, 'checks'),
            text(row, 'failures'),
            share(count(row, 'failures'), count(row, 'checks')),
            text(row, 'last_failed'),
            (columns: number) => bar(count(row, 'failures'), most, columns),
          ]),
        },
        notes: leftOut(count(worst, 'all_criteria'), 'criteria'),
      },
    ];
  },
};
