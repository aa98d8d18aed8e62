import robotsParser from 'robots-parser';
import { NetError, USER_AGENT, type WebClient } from '../net/index.ts';

/** RFC 9309 2.5: at least so much is looked at; what lies beyond is not. */
const MAX_BYTES = 500 * 1024;
const MAX_DELAY_MS = 10_000;
/**
 * Rules with wildcards are matched in as many steps as they have characters, for each character of the address, and
 * nobody else has a turn meanwhile: a tenth of a second.
 */
const MAX_STEPS = 20_000_000;

export type Robots = Readonly<{
  allows(url: URL): boolean;
  /** What the site asks us to wait between two pages; at most ten seconds. */
  delayMs: number;
  /** Why the rules could not be read, for people: then nothing is allowed. */
  failure?: string;
}>;

const everything: Robots = { allows: () => true, delayMs: 0 };
const nothing = (failure: string): Robots => ({ allows: () => false, delayMs: 0, failure });

async function firstBytes(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= MAX_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_BYTES).toString('utf8');
}

/** How much of the text is in lines that may hold a rule with a wildcard. */
function wildcardBytes(text: string): number {
  return text
    .split(/[\r\n]+/)
    .filter((line) => line.includes('*'))
    .reduce((bytes, line) => bytes + Buffer.byteLength(line), 0);
}

/**
 * What the robots.txt of an origin allows us (RFC 9309): all where there is none (any 4xx), nothing while its server
 * fails (5xx) or redirects in a loop.
 * @throws NetError when the server cannot be reached, or the signal's reason
 */
export async function readRobots(
  client: WebClient,
  origin: string,
  options: Readonly<{ signal?: AbortSignal | undefined; beforeHop?: (url: URL) => void }> = {},
): Promise<Robots> {
  const address = new URL('/robots.txt', origin);
  try {
    const response = await client.fetch(address, { totalMs: 10_000, maxBytes: 2 * MAX_BYTES, ...options });
    if (response.status >= 400 && response.status < 500) {
      response.discard();
      return everything;
    }
    if (response.status !== 200) {
      response.discard();
      const what = `${address.host} responds to /robots.txt with status ${response.status}`;
      return nothing(`${what}, which forbids reading its pages. Try again later.`);
    }
    const text = await firstBytes(response.body);
    const rules = robotsParser(address.href, text);
    const wildcards = wildcardBytes(text);
    return {
      // What nobody can tell in time is not allowed.
      allows: (url) => wildcards * url.href.length <= MAX_STEPS && (rules.isAllowed(url.href, USER_AGENT) ?? true),
      delayMs: Math.min(MAX_DELAY_MS, Math.max(0, (rules.getCrawlDelay(USER_AGENT) ?? 0) * 1_000)) || 0,
    };
  } catch (error) {
    const broken = error instanceof NetError && /^(redirect_loop|too_many_redirects|bad_response)$/.test(error.reason);
    if (broken) return nothing(`The robots.txt of ${address.host} cannot be read: ${error.message}`);
    throw error;
  }
}
