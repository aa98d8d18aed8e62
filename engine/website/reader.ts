import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { NetError, parseUrl, type WebClient } from '../net/index.ts';
import { isSameSite, type Page, type PageBytes, readPage } from './page.ts';
import { createPageReader, isPageFailure, PageError } from './page_reader.ts';

export type ReadLimits = Readonly<{ pages: number; bytes: number; totalMs: number }>;

/** Of one website (docs/interface.md 8.4). */
export const READ_LIMITS: ReadLimits = { pages: 20, bytes: 10 * 1024 * 1024, totalMs: 60_000 };

const PAGE_MS = 15_000;
/** Of a longer page this much is read. */
const PAGE_BYTES = 2 * 1024 * 1024;
/** Responses that are no pages, and pages that are there already, take requests too. */
const REQUESTS_PER_PAGE = 3;
const OTHER_FILES =
  /\.(pdf|docx?|xlsx?|pptx?|odt|zip|gz|tgz|rar|7z|exe|dmg|iso|apk|jpe?g|png|gif|webp|avif|svg|ico|bmp|mp[34]|m4[av]|avi|mov|webm|ogg|wav|css|js|mjs|json|xml|rss|atom|woff2?|ttf|ics|csv)$/i;

export type ReadWarning = Readonly<{ code: string; message: string; url: string }>;

export type KeptPage = Readonly<{ requestedUrl: string; page: Page; raw: PageBytes }>;

export type ReadOutcome = Readonly<{
  pages: number;
  /** Why more of the site was not read; null when all of it was, or nothing. */
  limit: 'pages' | 'bytes' | 'time' | null;
  /** Only what concerns the site as a whole: single pages are missing on most sites. */
  warnings: readonly ReadWarning[];
}>;

export type ReadOptions = Readonly<{
  client: WebClient;
  /** The start page, as a user gave it. */
  website: string;
  blocked?: (url: URL) => boolean;
  limits?: Partial<ReadLimits>;
  signal?: AbortSignal | undefined;
  /** What an earlier try has kept of an address: then it is not asked again, and the site may have changed since. */
  recall?: (requestedUrl: string) => Promise<PageBytes | null>;
  /** Keeps a page. It is done before the next page is asked for. */
  keep: (kept: KeptPage) => Promise<void>;
}>;

function warningOf(error: PageError | NetError, url: string): ReadWarning {
  if (error instanceof PageError && error.reason !== 'status') {
    return { code: `website_${error.reason}`, message: error.message, url };
  }
  if (error instanceof NetError && /_refused$/.test(error.reason)) {
    return { code: 'website_refused', message: error.message, url };
  }
  return { code: 'website_unreachable', message: error.message, url };
}

/** What has been read already, under whatever name. */
function createMemory() {
  const urls = new Set<string>();
  const digests = new Set<string>();
  return {
    /** False when the address was met before. */
    meet(url: string): boolean {
      if (urls.has(url)) return false;
      urls.add(url);
      return true;
    },
    /** False when another address has returned the same, or says that it is the same page. */
    isNew(requestedUrl: string, page: Page, bytes: Uint8Array): boolean {
      const digest = createHash('sha256').update(bytes).digest('hex');
      const names = new Set([page.url, page.canonicalUrl ?? page.url]);
      names.delete(requestedUrl);
      const known = digests.has(digest) || [...names].some((name) => urls.has(name));
      digests.add(digest);
      for (const name of names) urls.add(name);
      return !known;
    },
  };
}

/**
 * Reads a website from its start page on, page after page: at most `limits.pages` pages, bytes and time, of the same
 * site, the links of the start page first. A site that cannot be read is a warning.
 * @throws the signal's reason, or what `keep` and `recall` throw
 */
export async function readWebsite(options: ReadOptions): Promise<ReadOutcome> {
  const { client, website, recall, keep } = options;
  const limits = { ...READ_LIMITS, ...options.limits };
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(new NetError('timed_out', `${website} takes too long.`)), limits.totalMs);
  const endsAt = Date.now() + limits.totalMs;
  const signal = options.signal ? AbortSignal.any([options.signal, over.signal]) : over.signal;
  const reader = createPageReader({ client, signal, ...(options.blocked ? { blocked: options.blocked } : {}) });
  const memory = createMemory();
  const queue: string[] = [];
  let site: URL | null = null;
  let pages = 0;
  let bytes = 0;
  let requests = 0;
  let silent = true;

  async function open(address: string): Promise<PageBytes> {
    const kept = await recall?.(address);
    if (kept) return kept;
    if (requests > 0) await wait(await reader.delayMs(address), undefined, { signal });
    requests += 1;
    const start = site;
    return reader.open(address, {
      maxBytes: Math.min(PAGE_BYTES, limits.bytes - bytes),
      totalMs: Math.max(1, Math.min(PAGE_MS, endsAt - Date.now())),
      ...(start === null ? {} : { within: (url: URL) => isSameSite(url, start) }),
    });
  }

  async function read(address: string): Promise<void> {
    const raw = await open(address);
    const page = await readPage(raw, signal);
    bytes += raw.bytes.length;
    site ??= new URL(page.url);
    const start = site;
    if (!memory.isNew(address, page, raw.bytes)) return;
    pages += 1;
    if (page.text !== '') silent = false;
    await keep({ requestedUrl: address, page, raw });
    for (const link of page.links) {
      const url = new URL(link);
      if (isSameSite(url, start) && !OTHER_FILES.test(url.pathname) && memory.meet(link)) queue.push(link);
    }
  }

  function limit(): ReadOutcome['limit'] {
    if (over.signal.aborted) return 'time';
    if (bytes >= limits.bytes) return 'bytes';
    if (pages >= limits.pages || requests >= limits.pages * REQUESTS_PER_PAGE) return 'pages';
    return null;
  }

  function outcome(reached: ReadOutcome['limit']): ReadOutcome {
    const message = `${website} shows no text to those who do not run its scripts.`;
    const warnings = silent ? [{ code: 'website_without_text', message, url: website }] : [];
    return { pages, limit: reached, warnings };
  }

  try {
    let first: string;
    try {
      first = parseUrl(website).href;
      memory.meet(first);
      await read(first);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (over.signal.aborted) return { pages, limit: 'time', warnings: [warningOf(over.signal.reason, website)] };
      if (!isPageFailure(error)) throw error;
      return { pages, limit: null, warnings: [warningOf(error, website)] };
    }
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const reached = limit();
      if (reached !== null) return outcome(reached);
      try {
        await read(next);
      } catch (error) {
        options.signal?.throwIfAborted();
        // Nothing but the end of the time ends the others.
        if (over.signal.aborted) return outcome('time');
        if (!isPageFailure(error)) throw error;
      }
    }
    return outcome(null);
  } finally {
    clearTimeout(timer);
  }
}
