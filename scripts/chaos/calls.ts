import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, isRetryable, type WorkerApi, workerApi } from '../worker/api.ts';
import type { Report, WorkerSettings } from './protocol.ts';
import type { Random } from './random.ts';

const TIMEOUT_MS = 6_000;
const GIVE_UP_AFTER_MS = 30_000;
const NEVER = new AbortController().signal;

export type Call = Readonly<{ signal: AbortSignal; timeoutMs: number }>;
type Send<T> = (api: WorkerApi, call: Call) => Promise<T>;

export type Calls = Readonly<{
  /** Sent until it gets a response, to another API after each failure. @throws ApiError what was refused */
  call: <T>(send: Send<T>) => Promise<T>;
  /** Sent once. */
  once: <T>(send: Send<T>, signal?: AbortSignal) => Promise<T>;
  /** Sent to two APIs at the same time, or to one twice; both responses. */
  twice: <T>(send: Send<T>) => Promise<[T, T]>;
  /** What the API returns to a bearer of an execution token. */
  statusOf: (organizationId: string, executionToken: string) => Promise<number>;
}>;

/** What fits no rule of the interface, whichever process was killed: an unforeseen failure of the API. */
function isUnforeseen(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status >= 500 && error.status !== 503;
}

export function createCalls(settings: WorkerSettings, random: Random, report: Report): Calls {
  const apis = settings.urls.map((url) => workerApi({ url, token: settings.token }));

  async function once<T>(send: Send<T>, signal: AbortSignal = NEVER): Promise<T> {
    try {
      return await send(random.pick(apis), { signal, timeoutMs: TIMEOUT_MS });
    } catch (error) {
      if (isUnforeseen(error)) {
        const what = { by: settings.workerId, status: error.status, code: error.code, message: error.message };
        report({
          kind: 'violation',
          rule: 'the API responds with 503 where it cannot, and never with another 5xx',
          what,
        });
      }
      throw error;
    }
  }

  async function call<T>(send: Send<T>): Promise<T> {
    const deadline = performance.now() + GIVE_UP_AFTER_MS;
    for (;;) {
      try {
        return await once(send);
      } catch (error) {
        if (!isRetryable(error) || performance.now() > deadline) throw error;
        await sleep(random.between(20, 250));
      }
    }
  }

  return {
    call,
    once,
    async twice(send) {
      const side = random.chance(0.5);
      if (side) return Promise.all([call(send), call(send)]);
      return [await call(send), await call(send)];
    },
    async statusOf(organizationId, executionToken) {
      for (;;) {
        try {
          const url = `${random.pick(settings.urls)}/internal/agent/organizations/${organizationId}/status`;
          const headers = { authorization: `Bearer ${executionToken}` };
          const { status, body } = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
          await body?.cancel();
          if (status !== 503) return status;
        } catch (error) {
          if (!isRetryable(error)) throw error;
        }
        await sleep(random.between(20, 250));
      }
    },
  };
}
