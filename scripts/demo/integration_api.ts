import { z } from 'zod';
import { callOwnerApi } from '../owner_call.ts';

const toolSchema = z.looseObject({
  key: z.string(),
  title: z.string(),
  effect: z.string(),
  enabled: z.boolean(),
  unavailableReason: z.string().nullable(),
});
const integrationSchema = z.looseObject({
  key: z.string(),
  provider: z.string(),
  readiness: z.string(),
  settings: z.looseObject({ serverUrl: z.string().optional() }).nullable(),
  tools: z.array(toolSchema),
  connection: z.looseObject({ kind: z.string(), account: z.looseObject({ label: z.string().nullable() }) }).nullable(),
});
export type DemoIntegration = z.output<typeof integrationSchema>;

const seenSchema = z.looseObject({
  available: z.boolean(),
  unavailableReason: z.string().nullable(),
  capabilities: z.array(z.looseObject({ tool: z.string(), effect: z.string() })),
});
export type SeenIntegration = z.output<typeof seenSchema>;

const statusSchema = z.looseObject({ organization: z.looseObject({ authorizationEpoch: z.int() }) });

export type IntegrationTarget = Readonly<{
  url: string;
  /** Of an owner. */
  token: string | undefined;
  serviceToken: string;
  organizationId: string;
  /** Of the integration. */
  key: string;
}>;

/** The calls of the demo about one integration, as an owner and as an agent. */
export function integrationApi({ url, token, serviceToken, organizationId, key }: IntegrationTarget) {
  async function request<S extends z.ZodType>(
    schema: S,
    method: string,
    path: string,
    options: Readonly<{ body?: unknown; token?: string | undefined }> = {},
  ): Promise<z.output<S>> {
    const response = await callOwnerApi({ url, method, path, token, ...options });
    const { data } = z.object({ data: z.unknown() }).parse(await response.json());
    return schema.parse(data);
  }

  const all = `/organizations/${organizationId}/integrations`;
  const own = (method: string, rest = '', body?: unknown) =>
    request(integrationSchema, method, `${all}/${key}${rest}`, { body });
  const agent = `/internal/agent/organizations/${organizationId}`;
  const asAgent = { token: serviceToken };
  return {
    create: (name: string) => request(integrationSchema, 'POST', all, { body: { key, provider: 'mcp', name } }),
    get: () => own('GET'),
    putSettings: (serverUrl: string) => own('PUT', '/settings', { settings: { kind: 'mcp', serverUrl } }),
    connect: () => own('PUT', '/credential', { kind: 'none' }),
    discover: () => request(z.unknown(), 'POST', `${all}/${key}/discover`),
    putTools: (body: object) => own('PUT', '/tools', body),
    setStatus: (status: 'enabled' | 'disabled') => own('PATCH', '/status', { status }),
    delete: () => own('DELETE'),
    /** What an agent may use now. */
    async seen(): Promise<SeenIntegration> {
      const { organization } = await request(statusSchema, 'GET', `${agent}/status`, asAgent);
      const path = `${agent}/integrations/${key}?authorizationEpoch=${organization.authorizationEpoch}`;
      return request(seenSchema, 'GET', path, asAgent);
    },
  };
}

export type IntegrationApi = ReturnType<typeof integrationApi>;
