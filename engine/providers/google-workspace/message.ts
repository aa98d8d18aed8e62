import { z } from 'zod';
import { ProviderError } from '../outgoing/index.ts';
import { KEY } from './site.ts';

// Messages as Gmail gives them: a tree of parts, whose texts are base64url.

export const part = z.object({
  partId: z.string().optional(),
  mimeType: z.string().optional(),
  filename: z.string().optional(),
  headers: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
  body: z
    .object({ attachmentId: z.string().optional(), size: z.int().optional(), data: z.string().optional() })
    .optional(),
  get parts(): z.ZodOptional<z.ZodArray<typeof part>> {
    return z.array(part).optional();
  },
});
export type Part = z.output<typeof part>;

export const message = z.object({
  id: z.string(),
  threadId: z.string().optional(),
  labelIds: z.array(z.string()).optional(),
  snippet: z.string().optional(),
  internalDate: z.string().optional(),
  payload: part.optional(),
});

const HEADERS = ['From', 'To', 'Cc', 'Bcc', 'Reply-To', 'Subject', 'Date', 'Message-ID', 'In-Reply-To'] as const;
const camel = (name: string) =>
  name
    .replace('ID', 'Id')
    .replace(/^./, (first) => first.toLowerCase())
    .replaceAll('-', '');

/** All parts, each before those in it. */
export function partsOf(root: Part | undefined): Part[] {
  return root === undefined ? [] : [root, ...(root.parts ?? []).flatMap(partsOf)];
}

function textOf(parts: readonly Part[], mimeType: string): string | null {
  const found = parts.filter((one) => one.mimeType === mimeType && !one.filename && one.body?.data !== undefined);
  if (found.length === 0) return null;
  return found.map((one) => Buffer.from(one.body?.data ?? '', 'base64url').toString('utf8')).join('\n');
}

/** Who, when, what: the text, or without one the HTML, and what is attached by the id of its part. */
export function shownMessage({ payload, ...rest }: z.output<typeof message>) {
  const parts = partsOf(payload);
  const headers = HEADERS.flatMap((name) => {
    const found = payload?.headers?.find((one) => one.name.toLowerCase() === name.toLowerCase());
    return found ? [[camel(name), found.value] as const] : [];
  });
  const text = textOf(parts, 'text/plain');
  return {
    ...rest,
    headers: Object.fromEntries(headers),
    text,
    html: text === null ? textOf(parts, 'text/html') : null,
    attachments: parts
      .filter(({ filename }) => filename)
      .map(({ partId, filename, mimeType, body }) => ({ partId, filename, mimeType, size: body?.size })),
  };
}

const wrongForm = () =>
  new ProviderError(KEY, 'failed', 'The provider responds in a form that is not the documented one.');

const BEGIN = /"data"\s*:\s*"/;
const MAX_HEAD = 16 * 1024;

/**
 * The bytes of `data`, a base64url text in an object of JSON, as they come. The other fields of an attachment (`size`, `attachmentId`)
 * hold no quotes.
 * @throws ProviderError
 */
export async function* attachmentBytes(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  let head: string | undefined = '';
  let rest = '';
  for await (const chunk of body) {
    let text = Buffer.from(chunk).toString('latin1');
    if (head !== undefined) {
      head += text;
      const begin = BEGIN.exec(head);
      if (!begin) {
        if (head.length > MAX_HEAD) throw wrongForm();
        continue;
      }
      text = head.slice(begin.index + begin[0].length);
      head = undefined;
    }
    const end = text.indexOf('"');
    const isLast = end >= 0;
    // Google writes the padding as an escape.
    const all = (rest + (isLast ? text.slice(0, end) : text)).replaceAll('\\u003d', '=');
    const cut = isLast ? -1 : all.indexOf('\\');
    const usable = cut < 0 ? all : all.slice(0, cut);
    if (!/^[A-Za-z0-9_-]*={0,2}$/.test(usable) || all.length - usable.length > 5) throw wrongForm();
    const whole = isLast ? usable.length : usable.length - (usable.length % 4);
    rest = all.slice(whole);
    if (whole > 0) yield Buffer.from(usable.slice(0, whole), 'base64url');
    if (isLast) return;
  }
  throw new ProviderError(KEY, 'unavailable', 'The provider cannot be reached, or broke off.');
}
