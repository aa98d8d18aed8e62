import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { TearDown } from './database.ts';
import type { Operation } from './openapi.ts';
import type { GeneratedRequest } from './request_arbitrary.ts';
import { filled } from './request_hints.ts';
import type { World } from './worlds.ts';

export type SentResponse = Readonly<{ status: number; type: string; body: Buffer }>;

const asText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
/** Header values hold Latin-1 without controls; the client itself would refuse others. */
const headerText = (value: unknown) =>
  asText(value)
    .replace(/[^\t\x20-\x7e\xa0-\xff]/g, '?')
    .slice(0, 3000);

/** A path segment: encoded, but for percent signs that are there to be broken. */
function segment(value: string): string {
  return /^%(?:zz|c3%28|00|)$/.test(value) ? value : encodeURIComponent(value.toWellFormed());
}

/** Path and query of a request, encoded. */
export function pathOf(operation: Operation, given: GeneratedRequest, world: World): string {
  const path = operation.path.replace(/\{(\w+)\}/g, (_whole, name) => {
    const value = filled(asText(given.params[name]), world);
    return name === 'path' ? value.split('/').map(segment).join('/') : segment(value);
  });
  const pairs = given.query.map(([name, value]) =>
    [name, filled(asText(value), world)].map((text) => encodeURIComponent(text.toWellFormed())).join('='),
  );
  return (pairs.length === 0 ? path : `${path}?${pairs.join('&')}`).slice(0, 8000);
}

/** Sends generated requests as they are. */
export function createSender(t: TearDown, url: string) {
  const { hostname, port } = new URL(url);
  const agent = new Agent({ keepAlive: true });
  t.teardown(async () => agent.destroy());
  return async function send(operation: Operation, given: GeneratedRequest, world: World): Promise<SentResponse> {
    const body =
      given.body &&
      (given.body.kind === 'raw'
        ? given.body.bytes
        : Buffer.from(filled(JSON.stringify(given.body.value) ?? 'null', world)));
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(given.headers)) headers[name] = headerText(filled(asText(value), world));
    if (given.mediaType !== undefined && body) headers['content-type'] = given.mediaType;
    if (given.token !== undefined) headers['authorization'] = `Bearer ${filled(given.token, world)}`;
    if (body) headers['content-length'] = String(body.length);
    const outgoing = request({
      agent,
      hostname,
      port,
      method: operation.method,
      path: pathOf(operation, given, world),
      headers,
    });
    const received = once(outgoing, 'response');
    outgoing.end(body);
    const [response] = await received;
    if (response.headers['content-type'] === 'text/event-stream' && operation.method === 'GET') {
      // It has no end.
      response.destroy();
      return { status: response.statusCode, type: 'text/event-stream', body: Buffer.alloc(0) };
    }
    return {
      status: response.statusCode,
      type: String(response.headers['content-type']),
      body: await buffer(response),
    };
  };
}
