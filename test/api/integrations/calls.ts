// What an owner does with one integration and its connection.
import type { Integration } from '../../../api/integrations/schema.ts';
import type { Fields } from '../../support/api_fixtures.ts';
import { atIntegrations } from '../../support/authorization_flows.ts';
import type { TestOrganization } from '../../support/fixtures.ts';
import type { Client } from '../../support/http.ts';

type Discovered = { discovery: Fields; items: Fields[]; truncated: boolean };

export function openCalls(client: Client, org: Pick<TestOrganization, 'organizationId'>, ref: string) {
  const at = (rest = '') => atIntegrations(org, `/${ref}${rest}`);
  return {
    get: () => client.get<Integration>(at()),
    settings: (settings: unknown) => client.put<Integration>(at('/settings'), { settings }),
    connect: (credential: Fields) => client.put<Integration>(at('/credential'), credential),
    disconnect: () => client.delete<Integration>(at('/credential')),
    discover: () => client.post<Discovered>(at('/discover')),
    tools: (body: Fields) => client.put<Integration>(at('/tools'), body),
    status: (status: string) => client.patch<Integration>(at('/status'), { status }),
    delete: () => client.delete<Integration>(at()),
  };
}
