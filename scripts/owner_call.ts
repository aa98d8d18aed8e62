import { z } from 'zod';

const TIMEOUT_MS = 30_000;

const refusalSchema = z.object({
  message: z.string(),
  error: z.object({
    issues: z.array(z.object({ path: z.string(), code: z.string().optional(), message: z.string() })).optional(),
  }),
});
type Refusal = Readonly<{ reason: string; issueCode: string | undefined }>;

/** A response that is not 2xx. */
export class OwnerApiError extends Error {
  override name = 'OwnerApiError';
  readonly status: number;
  /** What the API says, with its issues; undefined: the response is not one of ours. */
  readonly reason: string | undefined;
  /** Of the first issue. */
  readonly issueCode: string | undefined;

  constructor(call: string, status: number, refusal: Refusal | undefined) {
    super(`${call}: ${refusal?.reason ?? `HTTP ${status}`}`);
    this.status = status;
    this.reason = refusal?.reason;
    this.issueCode = refusal?.issueCode;
  }
}

/** Whether a message says already what an issue of it says. */
function says(message: string, issue: string): boolean {
  const words = (text: string) => ` ${(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []).join(' ')} `;
  return words(message).includes(words(issue));
}

async function refusalOf(response: Response): Promise<Refusal | undefined> {
  const { data } = refusalSchema.safeParse(await response.json().catch(() => null));
  if (!data) return undefined;
  const issues = data.error.issues ?? [];
  const texts = issues
    .filter((issue) => !says(data.message, issue.message))
    .map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  const reason = texts.length === 0 ? data.message : `${data.message} (${texts.join('; ')})`;
  return { reason, issueCode: issues[0]?.code };
}

export type OwnerCall = Readonly<{
  /** Of the API. */
  url: string;
  method: string;
  path: string;
  /** Bytes are sent as they are, everything else as JSON. */
  body?: unknown;
  token?: string | undefined;
  headers?: Readonly<Record<string, string>>;
  signal?: AbortSignal | undefined;
  /** With its response. Default: 30 s; Infinity: no limit. */
  timeoutMs?: number | undefined;
}>;

/**
 * One call of a command that acts for an owner or an agent, not repeated.
 * @throws OwnerApiError; what fetch throws where nothing responds in time; the reason of `signal`
 */
export async function callOwnerApi(call: OwnerCall): Promise<Response> {
  const { url, method, path, body, token, headers, signal, timeoutMs = TIMEOUT_MS } = call;
  const timeout = timeoutMs === Number.POSITIVE_INFINITY ? [] : [AbortSignal.timeout(timeoutMs)];
  const isBytes = body instanceof Uint8Array;
  const contentType = isBytes ? 'application/octet-stream' : 'application/json';
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(body === undefined ? {} : { 'content-type': contentType }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isBytes ? new Uint8Array(body) : JSON.stringify(body) }),
    signal: AbortSignal.any(signal ? [signal, ...timeout] : timeout),
  });
  if (!response.ok) throw new OwnerApiError(`${method} ${path}`, response.status, await refusalOf(response));
  return response;
}
