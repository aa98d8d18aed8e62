import type { ProviderClient } from './client.ts';

/** The client whose requests may take so long, where they say nothing else. */
export function withTotal(client: ProviderClient, totalMs: number): ProviderClient {
  return {
    ...client,
    send: (site, request) => client.send(site, { totalMs, ...request }),
    json: (site, request, schema) => client.json(site, { totalMs, ...request }, schema),
  };
}
