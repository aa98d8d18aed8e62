import type { z } from 'zod';
import type { ProviderContext } from './context.ts';
import { type ProviderRequest, parsed, type Site } from './outgoing/index.ts';

export type Measured<T> = Readonly<{ data: T; bytes: number; headers: Readonly<Record<string, string>> }>;

/** What `schema` reads of a response, and how large that was. @throws ProviderError, the signal's reason */
export async function readMeasured<S extends z.ZodType>(
  { client }: Pick<ProviderContext, 'client'>,
  site: Site,
  request: ProviderRequest,
  schema: S,
): Promise<Measured<z.output<S>>> {
  const response = await client.send(site, request);
  const { headers, body } = response;
  return { data: parsed(site.provider, response, schema), bytes: body.byteLength, headers };
}
