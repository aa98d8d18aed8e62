import { parseUrl } from '../net/index.ts';
import { decodeText, essence } from './decode.ts';
import { MAX_TEXT, parseHtml, plain } from './html.ts';

/** What was read at an address, ready to be kept. */
export type PageBytes = Readonly<{
  /** After redirects. */
  url: string;
  contentType: string;
  bytes: Uint8Array;
}>;

export type Page = Readonly<{
  url: string;
  /** What the page itself calls its address, when that is one of the same site. */
  canonicalUrl: string | null;
  title: string | null;
  description: string | null;
  text: string;
  /** What the page is there for, without menus and the like: what is quoted of it. */
  main: string;
  /** All of the text, the main one first: what a model reads. */
  ordered: string;
  /** Absolute, without fragments, in the order of the page. */
  links: readonly string[];
}>;

const HTML = new Set(['text/html', 'application/xhtml+xml']);
const TEXT = new Set(['text/plain', 'text/markdown']);

/** Whether a response of this type is a page that can be read. */
export function isReadable(contentType: string): boolean {
  return HTML.has(essence(contentType)) || TEXT.has(essence(contentType));
}

function absolute(href: string, base: URL): URL | null {
  try {
    return parseUrl(href.trim(), base);
  } catch {
    return null;
  }
}

/**
 * Hosts that differ by `www.` alone are one site; so are http and https on their usual ports.
 * Two names below one domain are not: `acme.example` may not speak for its host's other customers.
 */
export function isSameSite(a: URL, b: URL): boolean {
  const name = (url: URL) => url.hostname.replace(/^www\./, '');
  return name(a) === name(b) && a.port === b.port;
}

/**
 * Reads what was found at an address: title, text and links.
 * @throws the signal's reason
 */
export async function readPage({ url, contentType, bytes }: PageBytes, signal?: AbortSignal): Promise<Page> {
  const source = decodeText(bytes, contentType);
  if (!HTML.has(essence(contentType))) {
    const text = plain(source).trim().slice(0, MAX_TEXT).toWellFormed();
    return { url, canonicalUrl: null, title: null, description: null, text, main: text, ordered: text, links: [] };
  }
  const html = await parseHtml(source, signal);
  const own = new URL(url);
  const base = (html.base === null ? null : absolute(html.base, own)) ?? own;
  const canonical = html.canonical === null ? null : absolute(html.canonical, base);
  const links = html.noFollow ? [] : html.links.flatMap((href) => absolute(href, base)?.href ?? []);
  return {
    url,
    canonicalUrl: canonical && isSameSite(canonical, own) ? canonical.href : null,
    title: html.title,
    description: html.description,
    text: html.text,
    main: html.main,
    ordered: html.around === '' ? html.main : `${html.main}\n${html.around}`,
    links: [...new Set(links)],
  };
}
