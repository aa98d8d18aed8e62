import { z } from 'zod';
import { chatEvents } from '../chat_events.ts';
import { callOwnerApi } from '../owner_call.ts';

const organizationSchema = z.looseObject({ id: z.string(), workDispatchStoppedAt: z.string().nullable() });

const checkSchema = z.looseObject({ status: z.string(), summary: z.string() });
const resultSchema = z.looseObject({
  summary: z.string().optional(),
  artifacts: z.array(z.looseObject({ path: z.string() })).optional(),
  completion: z
    .looseObject({ disposition: z.string(), runIds: z.array(z.string()), checks: z.array(checkSchema) })
    .optional(),
});
const taskSchema = z.looseObject({
  id: z.string(),
  identifier: z.string(),
  title: z.string(),
  status: z.string(),
  state: z.looseObject({
    blockers: z.array(z.looseObject({ kind: z.string(), taskId: z.string().optional() })),
  }),
  result: resultSchema.nullable(),
});
export type DemoTask = z.output<typeof taskSchema>;
const failedRunSchema = z.looseObject({
  id: z.string(),
  output: z.looseObject({ result: resultSchema.optional() }).nullable(),
});

const onboardingSchema = z.looseObject({
  organizationId: z.string(),
  status: z.string(),
  generation: z.int(),
  research: z.looseObject({
    error: z.looseObject({ message: z.string() }).nullable(),
    findings: z.array(z.looseObject({ claim: z.string() })),
  }),
  review: z
    .looseObject({
      sha256: z.string(),
      warnings: z.array(z.looseObject({ code: z.string(), message: z.string() })),
    })
    .nullable(),
});
export type DemoOnboarding = z.output<typeof onboardingSchema>;

const itemSchema = z.looseObject({
  id: z.string(),
  taskId: z.string().nullable(),
  body: z.string(),
  options: z.array(z.string()),
});
const createdSchema = z.looseObject({ id: z.string() });
const sentSchema = z.looseObject({ assistantMessage: createdSchema });

/** The calls of the demo as the owner of an organization. */
export function ownerApi(options: Readonly<{ url: string; token?: string | undefined }>) {
  const { url } = options;
  const request = (method: string, path: string, body?: unknown, token = options.token): Promise<Response> =>
    callOwnerApi({ url, method, path, body, token });

  async function requestJson<S extends z.ZodType>(
    schema: S,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<z.output<S>> {
    const response = await request(method, path, body);
    const { data } = z.object({ data: z.unknown() }).parse(await response.json());
    return schema.parse(data);
  }

  const organization = (id: string) => `/organizations/${id}`;
  const onboarding = (id: string, rest = '') => `${organization(id)}/onboarding${rest}`;
  return {
    /** Throws what fetch throws when nothing listens there. */
    ready: () => request('GET', '/readyz'),
    getOrganization: (id: string) => requestJson(organizationSchema, 'GET', organization(id)),
    createOrganization: (id: string, body: object) => requestJson(organizationSchema, 'POST', organization(id), body),
    resumeDispatch: (id: string) => request('PATCH', `${organization(id)}/work-dispatch`, { stopped: false }),
    provision: (id: string, departments: readonly string[]) =>
      requestJson(
        z.looseObject({ profiles: z.array(z.looseObject({ key: z.string(), name: z.string() })) }),
        'POST',
        `${organization(id)}/agent-profiles/provision`,
        { departments },
      ),
    createOnboarding: (body: object) => requestJson(onboardingSchema, 'POST', '/organization-onboardings', body),
    getOnboarding: (id: string) => requestJson(onboardingSchema, 'GET', onboarding(id)),
    discardOnboarding: (id: string) => request('DELETE', onboarding(id)),
    updateSetup: (id: string, body: object) => request('PATCH', onboarding(id, '/setup'), body),
    putSource: (
      id: string,
      file: Readonly<{ id: string; name: string; type: string; kind: string; department?: string }>,
      bytes: Uint8Array,
    ) => {
      const query = new URLSearchParams({ kind: file.kind, fileName: file.name, mediaType: file.type });
      if (file.department !== undefined) query.set('department', file.department);
      return request('PUT', `${onboarding(id, `/sources/${file.id}`)}?${query}`, bytes);
    },
    startOnboarding: (id: string) => request('POST', onboarding(id, '/start')),
    completeOnboarding: (id: string, body: object) => request('POST', onboarding(id, '/complete'), body),
    createTask: (id: string, body: object) => requestJson(taskSchema, 'POST', `${organization(id)}/tasks`, body),
    getTask: (id: string, taskId: string) => requestJson(taskSchema, 'GET', `${organization(id)}/tasks/${taskId}`),
    listTasks: (id: string, parentId: string) =>
      requestJson(z.array(taskSchema), 'GET', `${organization(id)}/tasks?parentId=${parentId}&sortDirection=asc`),
    /** The latest first. */
    failedRuns: (id: string, taskId: string) =>
      requestJson(z.array(failedRunSchema), 'GET', `${organization(id)}/runs?taskId=${taskId}&status=failed`),
    openQuestions: (id: string) =>
      requestJson(z.array(itemSchema), 'GET', `${organization(id)}/human-inbox?status=open&kind=question`),
    respond: (id: string, itemId: string, response: string) =>
      requestJson(itemSchema, 'POST', `${organization(id)}/human-inbox/${itemId}/respond`, { response }),
    createChat: (id: string, title: string) =>
      requestJson(createdSchema, 'POST', `${organization(id)}/chats`, { title }),
    attach: (
      id: string,
      chatId: string,
      file: Readonly<{ id: string; name: string; type: string }>,
      bytes: Uint8Array,
    ) => {
      const query = new URLSearchParams({ fileName: file.name, mediaType: file.type });
      return request('PUT', `${organization(id)}/chats/${chatId}/attachments/${file.id}?${query}`, bytes);
    },
    sendMessage: (id: string, chatId: string, body: object) =>
      requestJson(sentSchema, 'POST', `${organization(id)}/chats/${chatId}/messages`, body),
    listMessages: (id: string, chatId: string) =>
      requestJson(
        z.array(z.looseObject({ id: z.string(), status: z.string() })),
        'GET',
        `${organization(id)}/chats/${chatId}/messages`,
      ),
    /** Agents make schedules: with the service token. */
    createSchedule: (id: string, serviceToken: string, body: object) =>
      request('POST', `/internal/agent/organizations/${id}/schedules`, body, serviceToken),
    /** The events of a chat as they come. */
    chatEvents: (id: string, chatId: string, signal: AbortSignal) =>
      chatEvents({
        url: () => `${options.url}${organization(id)}/chats/${chatId}/events`,
        headers: options.token ? { authorization: `Bearer ${options.token}` } : {},
        signal,
      }),
    text: async (path: string) => (await request('GET', path)).text(),
  };
}

export type OwnerApi = ReturnType<typeof ownerApi>;
