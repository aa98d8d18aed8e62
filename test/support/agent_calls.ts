import { agentPath } from './api_fixtures.ts';
import type { Client, Reply } from './http.ts';

type At = Readonly<{ organizationId: string }>;
export type Calls = Readonly<Record<string, () => Promise<Reply<unknown>>>>;

/** All reads of agents (docs/interface.md 4.12), by name. */
export function agentReads(client: Client, at: At, ref: string): Calls {
  return {
    status: () => client.get(agentPath(at, '/status')),
    list: () => client.get(agentPath(at, '/tasks')),
    task: () => client.get(agentPath(at, `/tasks/${ref}`)),
    explain: () => client.get(agentPath(at, `/tasks/${ref}/explain`)),
    dependencies: () => client.get(agentPath(at, `/tasks/${ref}/dependencies`)),
    schedules: () => client.get(agentPath(at, '/schedules')),
    actions: () => client.get(agentPath(at, '/actions')),
  };
}

/** All their writes; `operator` is a profile's key. */
export function agentWrites(client: Client, at: At, ref: string): Calls {
  const task = agentPath(at, `/tasks/${ref}`);
  const template = { title: 'x', ownerProfileKey: 'operator' };
  return {
    create: () => client.post(agentPath(at, '/tasks'), { title: 'x', ownerProfileKey: 'operator' }),
    patch: () => client.patch(task, { expectedVersion: 1, title: 'x' }),
    depend: () => client.post(`${task}/dependencies`, { dependsOn: 'T-1' }),
    undepend: () => client.delete(`${task}/dependencies/T-1`),
    cancel: () => client.post(`${task}/cancel`),
    retry: () => client.post(`${task}/retry`),
    ask: () => client.post(`${task}/human-inbox`, { kind: 'question', title: 'Which one?' }),
    schedule: () => client.post(agentPath(at, '/schedules'), { cron: '0 9 * * *', taskTemplate: template }),
    pauseSchedule: () => client.post(agentPath(at, '/schedules/every-day/pause')),
    resumeSchedule: () => client.post(agentPath(at, '/schedules/every-day/resume')),
    deleteSchedule: () => client.delete(agentPath(at, '/schedules/every-day')),
    upload: () => client.put(`${task}/inputs/a.txt`, 'a'),
    stop: () => client.patch(agentPath(at, '/work-dispatch'), { stopped: true }),
  };
}

export function agentCalls(client: Client, at: At, ref: string): Calls {
  return { ...agentReads(client, at, ref), ...agentWrites(client, at, ref) };
}
