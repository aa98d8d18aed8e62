import type { TestOrganization } from './fixtures.ts';
import { changeSchedule, createSchedule } from './schedule_fixtures.ts';
import type { Sql } from './transitions.ts';

/** The decisions on schedules for the test of the audit log: each call, ready to be made, and what its entry says. */
export function scheduleDecisions(sql: Sql, org: () => Promise<TestOrganization & { base: string }>) {
  const one = (verb: string, before: readonly 'pause'[], body?: object) => async () => {
    const at = await org();
    const { id, key } = await createSchedule(sql, at);
    for (const change of before) await changeSchedule(sql.api, at, change, id);
    const path = `${at.base}/schedules/${key}${verb === 'pause' || verb === 'resume' ? `/${verb}` : ''}`;
    const entry = {
      action: `schedule.${verb}`,
      subject_kind: 'schedule',
      subject_id: id,
      arguments: { scheduleRef: key, ...body },
    };
    return { organizationId: at.organizationId, path, body, entry };
  };
  return {
    async createSchedule() {
      const { organizationId, base, profileKey } = await org();
      const body = { cron: '0 9 * * *', taskTemplate: { title: 'A task', ownerProfileKey: profileKey } };
      const entry = { action: 'schedule.create', subject_kind: 'schedule', subject_id: String, arguments: body };
      return { organizationId, path: `${base}/schedules`, body, entry };
    },
    updateSchedule: one('update', [], { expectedVersion: 1, title: 'Renamed' }),
    pauseSchedule: one('pause', []),
    resumeSchedule: one('resume', ['pause']),
    deleteSchedule: one('delete', []),
  };
}
