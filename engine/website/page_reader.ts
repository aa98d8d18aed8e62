import { cutOff } from '../media_types.ts';
import { NetError, type WebClient } from '../net/index.ts';
import { isReadable, type PageBytes } from './page.ts';
import { type Robots, readRobots } from './robots.ts';

export type PageReason = 'robots' | 'blocked' | 'elsewhere' | 'status' | 'not_a_page';

/** A page that was not read, though its server is there. The message is for people. */
export class PageError extends Error {
  override name = 'PageError';
  readonly reason: PageReason;
  constructor(reason: PageReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export type OpenOptions = Readonly<{
  /** A longer page is read up to here. */
  maxBytes: number;
  totalMs: number;
  /** Where the page, and what it redirects to, has to lie. */
  within?: (url: URL) => boolean;
}>;

export type PageReader = Readonly<{
  /**
   * The bytes at an address, robots.txt respected at each hop.
   * @throws PageError, NetError, or the signal's reason
   */
  open(address: string, options: OpenOptions): Promise<PageBytes>;
  /** How long the site of an address asks us to wait between two pages; zero while its robots.txt was not read. */
  delayMs(address: string): Promise<number>;
}>;

/** The bytes of a page. One that fills the limit may end inside of a character, and the rest of that would make it no UTF-8. */
async function bytesOf(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return bytes.length < maxBytes ? bytes : bytes.subarray(0, bytes.length - cutOff(bytes));
}

/** True for a domain of the list and for all names below it. */
export function domainBlocker(domains: readonly string[]): (url: URL) => boolean {
  const names = domains.map((domain) => domain.toLowerCase().replace(/^\*?\.|\.$/g, ''));
  return (url) => {
    const host = url.hostname.replace(/\.$/, '');
    return names.some((name) => name !== '' && (host === name || host.endsWith(`.${name}`)));
  };
}

/** Reads single pages; each site's robots.txt is read once. */
export function createPageReader(
  options: Readonly<{
    client: WebClient;
    /** Addresses that the organization does not want to be asked. */
    blocked?: (url: URL) => boolean;
    signal?: AbortSignal | undefined;
  }>,
): PageReader {
  const { client, signal } = options;
  const robots = new Map<string, Promise<Robots>>();

  function refuseBlocked(url: URL): void {
    if (options.blocked?.(url)) {
      throw new PageError('blocked', `${url.hostname} is one of the organization's blocked domains.`);
    }
  }

  function rulesOf(url: URL): Promise<Robots> {
    const known = robots.get(url.origin);
    if (known) return known;
    const read = readRobots(client, url.origin, { signal, beforeHop: refuseBlocked });
    robots.set(url.origin, read);
    // A server that was away for a moment is asked again.
    read.catch(() => robots.delete(url.origin));
    return read;
  }

  return {
    async open(address, { within, ...limits }) {
      async function beforeHop(url: URL): Promise<void> {
        refuseBlocked(url);
        if (within && !within(url)) throw new PageError('elsewhere', `${address} leads to another site.`);
        const rules = await rulesOf(url);
        if (rules.failure !== undefined) throw new PageError('status', rules.failure);
        if (!rules.allows(url)) {
          throw new PageError('robots', `The robots.txt of ${url.host} does not allow ${url.pathname} to be read.`);
        }
      }
      const response = await client.fetch(address, {
        ...limits,
        cut: true,
        signal,
        beforeHop,
        headers: { accept: 'text/html,application/xhtml+xml,text/plain;q=0.8' },
      });
      const contentType = response.headers['content-type'] ?? '';
      const refusal =
        response.status !== 200
          ? new PageError('status', `${response.url.href} responds with status ${response.status}.`)
          : isReadable(contentType)
            ? null
            : new PageError('not_a_page', `${response.url.href} is no page with text.`);
      if (refusal) {
        response.discard();
        throw refusal;
      }
      return { url: response.url.href, contentType, bytes: await bytesOf(response.body, limits.maxBytes) };
    },
    async delayMs(address) {
      const rules = robots.get(new URL(address).origin);
      return rules ? ((await rules.catch(() => null))?.delayMs ?? 0) : 0;
    },
  };
}

/** For whom a page cannot be read: ours to report, and no reason to give up. Anything else is thrown on. */
export function isPageFailure(error: unknown): error is PageError | NetError {
  return error instanceof PageError || error instanceof NetError;
}
