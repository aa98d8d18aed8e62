import { setImmediate as turn } from 'node:timers/promises';

/** What a page says, as plain text. URLs are as written: the caller knows what they are relative to. */
export type Html = Readonly<{
  title: string | null;
  description: string | null;
  canonical: string | null;
  base: string | null;
  /** `<meta name=robots content=nofollow>`. */
  noFollow: boolean;
  text: string;
  /** What it is there for: without menus, footers and the like. All of the text where a page has nothing else. */
  main: string;
  /** The rest of the text: where an address or a telephone number often stands. */
  around: string;
  links: readonly string[];
}>;

/** Longer texts are cut: nobody reads them, and a model is paid by the word. */
export const MAX_TEXT = 200_000;
const MAX_LINKS = 2_000;
const MAX_TITLE = 300;
const MAX_DESCRIPTION = 1_000;
/** The parser looks through all open elements at each end tag: a page nested for the sake of it would take hours. */
const MAX_DEPTH = 1_000;
const SLICE = 16 * 1024;

const SILENT = new Set([
  'script',
  'style',
  'noscript',
  'template',
  'svg',
  'math',
  'iframe',
  'object',
  'select',
  'canvas',
]);
const BLOCKS = new Set(
  `address article aside blockquote br button caption dd details dialog div dl dt fieldset figcaption figure footer form h1 h2
   h3 h4 h5 h6 header hr legend li main menu nav ol option p pre section summary table tbody tfoot thead tr ul video`.split(
    /\s+/,
  ),
);
const CELLS = new Set(['td', 'th']);
const AROUND = new Set(['nav', 'footer', 'aside', 'dialog']);
const AROUND_ROLES = new Set([
  'navigation',
  'banner',
  'contentinfo',
  'complementary',
  'search',
  'dialog',
  'alertdialog',
]);
/** A header inside of these is that of what is said, and not of the site. */
const HELD = new Set(['main', 'article', 'section']);

/** Where text stands. The numbers rank it: of a page with a `main`, that alone is the main text. */
const PLACE = { around: 0, body: 1, main: 2 } as const;
type Place = (typeof PLACE)[keyof typeof PLACE];

/** Where the text in an element stands; `outer`: where the element does, `held`: inside of an element of HELD. */
function placeOf(name: string, role: string, outer: Place, held: boolean): Place {
  if (outer === PLACE.around || AROUND.has(name) || AROUND_ROLES.has(role)) return PLACE.around;
  if (name === 'header' && !held) return PLACE.around;
  return name === 'main' || role === 'main' ? PLACE.main : outer;
}

/** Spaces to one, control characters gone, halves of characters made whole. */
export function plain(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069]/g, '')
    .replace(/[^\S\n]+/g, ' ');
}

function line(text: string, max: number): string | null {
  const short = plain(text).replace(/\s+/g, ' ').trim().slice(0, max).toWellFormed();
  return short === '' ? null : short;
}

function lines(text: string): string {
  const shown = plain(text)
    .split('\n')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  return shown.join('\n').slice(0, MAX_TEXT).toWellFormed();
}

/**
 * Reads an HTML page, however broken, in slices, so that a large one stops nobody else in the process.
 * @throws the signal's reason
 */
export async function parseHtml(source: string, signal?: AbortSignal): Promise<Html> {
  const { Parser } = await import('htmlparser2');
  let title = '';
  let description: string | null = null;
  let canonical: string | null = null;
  let base: string | null = null;
  let noFollow = false;
  let inTitle = false;
  let titled = false;
  let silent = 0;
  let depth = 0;
  let length = 0;
  const text: string[] = [];
  const places: Place[] = [];
  const open: { place: Place; held: boolean }[] = [];
  const links: string[] = [];

  function add(part: string): void {
    if (length > 2 * MAX_TEXT) return;
    text.push(part);
    places.push(open.at(-1)?.place ?? PLACE.body);
    length += part.length;
  }

  /** The text of these places. What is left out between two parts ends a line. */
  function textOf(wanted: (place: Place) => boolean): string {
    return lines(text.map((part, index) => (wanted(places[index] ?? PLACE.body) ? part : '\n')).join(''));
  }

  function meta(attributes: Readonly<Record<string, string>>): void {
    const name = (attributes['name'] ?? attributes['property'] ?? '').toLowerCase();
    const content = attributes['content'] ?? '';
    if (name === 'description') description = line(content, MAX_DESCRIPTION) ?? description;
    if (name === 'og:description') description ??= line(content, MAX_DESCRIPTION);
    if (name === 'robots' && /\b(nofollow|none)\b/i.test(content)) noFollow = true;
  }

  const parser = new Parser(
    {
      onopentag(name, attributes) {
        depth += 1;
        const { place, held } = open.at(-1) ?? { place: PLACE.body, held: false };
        const [role = ''] = (attributes['role'] ?? '').trim().toLowerCase().split(/\s+/, 1);
        open.push({ place: placeOf(name, role, place, held), held: held || HELD.has(name) });
        if (SILENT.has(name)) silent += 1;
        if (name === 'title' && silent === 0 && !titled) inTitle = true;
        if (name === 'meta') meta(attributes);
        if (name === 'base') base ??= attributes['href'] ?? null;
        const rel = (attributes['rel'] ?? '').toLowerCase().split(/\s+/);
        if (name === 'link' && rel.includes('canonical')) canonical ??= attributes['href'] ?? null;
        const href = attributes['href'];
        if ((name === 'a' || name === 'area') && href !== undefined && !rel.includes('nofollow')) {
          if (links.length < MAX_LINKS) links.push(href);
        }
        if (BLOCKS.has(name)) add('\n');
        else if (CELLS.has(name)) add(' ');
      },
      onclosetag(name) {
        depth -= 1;
        if (SILENT.has(name)) silent -= 1;
        if (name === 'title') {
          titled ||= inTitle;
          inTitle = false;
        }
        if (BLOCKS.has(name)) add('\n');
        else if (CELLS.has(name)) add(' ');
        open.pop();
      },
      ontext(part) {
        if (inTitle) title += part.slice(0, MAX_TITLE);
        else if (silent === 0) add(part.replace(/\s+/g, ' '));
      },
    },
    { decodeEntities: true },
  );
  for (let at = 0; at < source.length && depth < MAX_DEPTH; at += SLICE) {
    parser.write(source.slice(at, at + SLICE));
    await turn(undefined, signal ? { signal } : {});
  }
  parser.end();
  const ranked = [PLACE.main, PLACE.body].map((place) => textOf((one) => one === place));
  const main = ranked.find((found) => found !== '');
  const all = lines(text.join(''));
  const mainPlace = ranked[0] === '' ? PLACE.body : PLACE.main;
  const trim = (url: string | null) => (url === null || url.trim() === '' ? null : url.trim());
  return {
    title: line(title, MAX_TITLE),
    description,
    canonical: trim(canonical),
    base: trim(base),
    noFollow,
    text: all,
    main: main ?? all,
    around: main === undefined ? '' : textOf((one) => one !== mainPlace),
    links,
  };
}
