import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { callWith } from '../../../engine/db/function_text.ts';

/** Days are bounded in these: with daylight saving time, without it, and with a midnight that some days do not have. */
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'America/Havana',
  'Asia/Tokyo',
  'Africa/Cairo',
  'America/Santiago',
];
const PROFILES = [
  { key: 'operator', kind: 'operator', department: null },
  { key: 'chat', kind: 'chat', department: null },
  { key: 'growth', kind: 'department', department: 'growth' },
  { key: 'growth-two', kind: 'department', department: 'growth' },
  { key: 'engineering', kind: 'department', department: 'engineering' },
  { key: 'engineering-two', kind: 'department', department: 'engineering' },
  { key: 'support', kind: 'department', department: 'support' },
  { key: 'support-two', kind: 'department', department: 'support' },
];

/** Organizations with the profiles of the shipped catalog and some more, in their order. */
export async function seedReportedOrganizations(db: pg.Pool, count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID();
    ids.push(id);
    const config = { timezone: ZONES[index % ZONES.length], limits: { maxConcurrentRuns: 100 } };
    const fields = { slug: `reported-${id}`, name: `Reported ${index}`, config };
    await callWith(db, 'organization_create', { organizationId: id, fields, subject: null });
    for (const { key, kind, department } of PROFILES) {
      const body = { key, name: `Profile ${key}`, kind, department, config: { maxConcurrentRuns: 50 } };
      await callWith(db, 'agent_profile_create', { organizationId: id, fields: body });
    }
  }
  return ids;
}
