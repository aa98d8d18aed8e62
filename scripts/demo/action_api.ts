import { z } from 'zod';
import { callOwnerApi } from '../owner_call.ts';

const actionSchema = z.looseObject({
  id: z.string(),
  summary: z.string(),
  risk: z.string(),
  status: z.string(),
  version: z.int(),
  argumentsSha256: z.string(),
});
export type DemoAction = z.output<typeof actionSchema>;

export type ActionTarget = Readonly<{ url: string; token: string | undefined; organizationId: string }>;

/** The calls of the demo about actions, as the person who decides. */
export function actionApi({ url, token, organizationId }: ActionTarget) {
  const organization = `/organizations/${organizationId}`;
  const request = (method: string, path: string, body?: unknown) => callOwnerApi({ url, method, path, token, body });
  return {
    /** What a task has proposed, the latest first. */
    async ofTask(taskId: string): Promise<readonly DemoAction[]> {
      const response = await request('GET', `${organization}/actions?taskId=${taskId}`);
      return z.object({ data: z.array(actionSchema) }).parse(await response.json()).data;
    },
    /** Approves what was read, and nothing else. */
    approve: ({ id, version, argumentsSha256 }: DemoAction) =>
      request('POST', `${organization}/actions/${id}/approve`, { expectedVersion: version, argumentsSha256 }),
    receipt: async (id: string) => (await request('GET', `${organization}/actions/${id}/receipt`)).text(),
    keys: async () => (await request('GET', '/.well-known/business-runner-keys.json')).text(),
    cancelTask: (id: string) => request('POST', `${organization}/tasks/${id}/cancel`, {}),
  };
}

export type ActionApi = ReturnType<typeof actionApi>;
