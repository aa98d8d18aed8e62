import { z } from 'zod';
import { withoutTexts } from '../../secret_values.ts';
import { storableFault } from '../../storable.ts';
import { storableJson } from '../outgoing/index.ts';

// What a tool's result is for us: texts, structured content, and what else there is by its data or its size.

/** Base64. Longer ones are named with their size. */
const MAX_DATA = 1024 * 1024;
/** Of a write, whose result stays with its action. */
const MAX_KEPT_TEXT = 4_000;
const MAX_KEPT_BLOCKS = 20;
const MAX_KEPT_STRUCTURE = 16 * 1024;

const media = { mimeType: z.string().optional(), data: z.string() };
const about = {
  uri: z.string(),
  name: z.string().optional(),
  title: z.string().optional(),
  description: z.string().optional(),
  mimeType: z.string().optional(),
  size: z.number().optional(),
};
const block = z.union([
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal(['image', 'audio']), ...media }),
  z.object({ type: z.literal('resource_link'), ...about }),
  z.object({
    type: z.literal('resource'),
    resource: z.object({ ...about, text: z.string().optional(), blob: z.string().optional() }),
  }),
  // A kind that is not known yet.
  z.object({ type: z.string() }),
]);

const callResult = z.object({
  content: z.array(block).default([]),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  isError: z.boolean().default(false),
});
type Block = z.output<typeof block>;
export type CallResult = z.output<typeof callResult>;

/** Without what cannot be stored. @throws where it is no result of a tool */
export function readResult(given: unknown): CallResult {
  const result = callResult.parse(storableJson(Buffer.from(JSON.stringify(given))));
  if (storableFault(result)) throw new TypeError('The result cannot be stored.');
  return result;
}

const bytesOf = (base64: string) => Math.floor((base64.replace(/={1,2}$/, '').length * 3) / 4);

function described(one: Block, maxData: number): unknown {
  if ('data' in one && one.data.length > maxData) {
    const { data, ...rest } = one;
    return { ...rest, sizeBytes: bytesOf(data) };
  }
  if ('resource' in one && (one.resource.blob?.length ?? 0) > maxData) {
    const { blob = '', ...rest } = one.resource;
    return { ...one, resource: { ...rest, sizeBytes: bytesOf(blob) } };
  }
  return one;
}

/** For who has called it. A tool's own error is among what it says. */
export function readData({ content, structuredContent, isError }: CallResult) {
  return {
    isError,
    content: content.map((one) => described(one, MAX_DATA)),
    ...(structuredContent === undefined ? {} : { structuredContent }),
  };
}

const cut = (text: string) =>
  text.length <= MAX_KEPT_TEXT ? text : `${text.slice(0, MAX_KEPT_TEXT - 1).toWellFormed()}…`;

function shortened(one: Block): unknown {
  if ('text' in one) return { ...one, text: cut(one.text) };
  if ('resource' in one && one.resource.text !== undefined) {
    return described({ ...one, resource: { ...one.resource, text: cut(one.resource.text) } }, 0);
  }
  return described(one, 0);
}

/** A block keeps its names and its kind, whatever the secrets are. */
function hiddenIn(one: Block, secrets: readonly string[]): Block {
  const { type, ...rest } = one;
  return { ...(withoutTexts(rest, secrets) as object), type } as Block;
}

/** What stays of a write: what the tool says it did, without files, and without the secrets that it was called with. */
export function keptData({ content, structuredContent }: CallResult, secrets: readonly string[]) {
  const isSmall =
    structuredContent !== undefined && Buffer.byteLength(JSON.stringify(structuredContent)) <= MAX_KEPT_STRUCTURE;
  return {
    // Before a text is cut: a part of a secret would stay.
    content: content.slice(0, MAX_KEPT_BLOCKS).map((one) => shortened(hiddenIn(one, secrets))),
    ...(isSmall ? { structuredContent: withoutTexts(structuredContent, secrets) } : {}),
  };
}
