import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Recorder } from './facts.ts';
import type { Random } from './random.ts';

const TIMEOUT_MS = 10_000;

const envelope = z.looseObject({
  message: z.string(),
  data: z.unknown().optional(),
  error: z.object({ code: z.string() }).optional(),
});
const created = z.looseObject({ id: z.string() });

/** The owner was refused what must not be refused. */
export class RefusedError extends Error {
  override name = 'RefusedError';
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export type OwnerOptions = Readonly<{
  urls: readonly string[];
  random: Random;
  recorder: Recorder;
  signal: AbortSignal;
}>;

export type Owner = Readonly<{
  /**
   * POST with an Idempotency-Key, whose response may be lost or thrown away: sent again until it is there. Returns the id,
   * which `idOf` finds in the response where it is not simply there.
   */
  create: (path: string, key: string, body: object, idOf?: (data: unknown) => string) => Promise<string>;
  /** Sent until it gets a response. */
  post: (path: string, body: object) => Promise<void>;
  /** The same. */
  patch: (path: string, body: object) => Promise<void>;
}>;

/** The owner of all organizations, who loses responses and does not trust them. */
export function createOwner({ urls, random, recorder, signal }: OwnerOptions): Owner {
  type Request = Readonly<{ method: string; path: string; body: object; key?: string }>;

  /** Undefined: there was no response, or the API cannot serve now. */
  async function sendOnce({ method, path, body, key }: Request, patienceMs: number): Promise<unknown> {
    let status: number;
    let text: string;
    try {
      const response = await fetch(random.pick(urls) + path, {
        method,
        headers: { 'content-type': 'application/json', ...(key ? { 'idempotency-key': key } : {}) },
        body: JSON.stringify(body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]),
      });
      status = response.status;
      text = await response.text();
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
    if (status === 503) return undefined;
    const response = envelope.parse(JSON.parse(text));
    if (status >= 200 && status < 300) return response.data;
    const code = response.error?.code ?? '';
    throw new RefusedError(code, `${method} ${path}: ${status} ${code} ${response.message}`);
  }

  async function send(request: Request): Promise<unknown> {
    for (;;) {
      const data = await sendOnce(request, TIMEOUT_MS);
      if (data !== undefined) return data;
      await sleep(random.between(20, 250), undefined, { signal });
    }
  }

  return {
    async create(path, key, body, idOf = (data) => created.parse(data).id) {
      const request = { method: 'POST', path, body, key };
      if (random.chance(0.15)) {
        await sendOnce(request, random.between(1, 40));
        recorder.count('a response thrown away');
      }
      const times = random.chance(0.1) ? 2 : 1;
      const responses = await Promise.all(Array.from({ length: times }, () => send(request)));
      const ids = responses.map(idOf);
      if (times > 1) recorder.count('a creation sent twice');
      const [id = ''] = ids;
      if (new Set(ids).size > 1) recorder.violation('one key makes one of it', { path, key, ids });
      return id;
    },
    async post(path, body) {
      await send({ method: 'POST', path, body });
    },
    async patch(path, body) {
      await send({ method: 'PATCH', path, body });
    },
  };
}
