import { randomUUID } from 'node:crypto';

const SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;
const MAX_LENGTH = 512;

function segments(text: string): string[] {
  const parts = text.split('/');
  // Segments never begin with a dot: no `..`, no hidden files, and `.incoming` of the file driver is out of reach.
  if (text.length > MAX_LENGTH || !parts.every((part) => SEGMENT.test(part))) {
    throw new RangeError(`not a storage key: ${JSON.stringify(text.slice(0, 100))}`);
  }
  return parts;
}

/** The parts of a key. @throws RangeError on anything that we would not have made ourselves. */
export function keySegments(key: string): string[] {
  return segments(key);
}

/** The parts of a prefix, which is whole segments and ends with a slash. @throws RangeError */
export function prefixSegments(prefix: string): string[] {
  if (!prefix.endsWith('/')) throw new RangeError(`a storage prefix ends with a slash: ${JSON.stringify(prefix)}`);
  return segments(prefix.slice(0, -1));
}

/** All that belongs to one organization lies below this prefix, so that it can be deleted or moved whole. */
export function organizationPrefix(organizationId: string): string {
  return `organizations/${organizationId}/`;
}

const timedName = () => `${Date.now()}-${randomUUID()}`;

function timeOf(key: string, form: RegExp): number | null {
  const made = form.exec(key)?.[1];
  return made === undefined ? null : Number(made);
}

/** A fresh key for an output of a run. Fresh each time: an upload sent again never changes bytes that were recorded. */
export function runOutputKey(organizationId: string, runId: string): string {
  return `${organizationPrefix(organizationId)}runs/${runId}/outputs/${randomUUID()}`;
}

/** A fresh key for an uploaded input of a task. */
export function taskInputKey(organizationId: string, taskId: string): string {
  return `${organizationPrefix(organizationId)}tasks/${taskId}/inputs/${randomUUID()}`;
}

/** A fresh key for a file that was written for one run before it started. */
export function runContextKey(organizationId: string, runId: string): string {
  return `${organizationPrefix(organizationId)}runs/${runId}/context/${randomUUID()}`;
}

/** All that calls of the gateway send and bring lies below this prefix. */
export function invocationsPrefix(organizationId: string): string {
  return `${organizationPrefix(organizationId)}invocations/`;
}

/** `uploads`: where the holder of a URL writes. Nobody but us writes to the others. */
export type InvocationObject = 'files' | 'uploads' | 'responses';

/** A fresh key for an object of an invocation. It says when it was made, so that what no row ever names is found by its age. */
export function invocationKey(organizationId: string, object: InvocationObject): string {
  return `${invocationsPrefix(organizationId)}${object}/${timedName()}`;
}

/** When a key of `invocationKey` was made, in milliseconds; null for any other key. */
export function invocationKeyTime(key: string): number | null {
  return timeOf(key, /\/invocations\/(?:files|uploads|responses)\/(\d{13})-[0-9a-f-]{36}$/);
}

/** All files of a chat lie below this prefix, so that they go with it. */
export function chatPrefix(organizationId: string, chatId: string): string {
  return `${organizationPrefix(organizationId)}chats/${chatId}/`;
}

/** A fresh key for an attachment of a chat. */
export function chatAttachmentKey(organizationId: string, chatId: string): string {
  return `${chatPrefix(organizationId, chatId)}attachments/${randomUUID()}`;
}

/** All files of the context lie below this prefix. */
export function contextPrefix(organizationId: string): string {
  return `${organizationPrefix(organizationId)}context/`;
}

export type ContextFile = 'documents' | 'sources' | 'health';

/** A fresh key for a file of the context. It says when it was made, so that what no row ever names is found by its age. */
export function contextKey(organizationId: string, file: ContextFile): string {
  return `${contextPrefix(organizationId)}${file}/${timedName()}`;
}

/** When a key of `contextKey` was made, in milliseconds; null for any other key. */
export function contextKeyTime(key: string): number | null {
  return timeOf(key, /\/context\/(?:documents|sources|health)\/(\d{13})-[0-9a-f-]{36}$/);
}

/** All files with facts lie below this prefix. */
export function insightsPrefix(organizationId: string): string {
  return `${organizationPrefix(organizationId)}insights/`;
}

export type SegmentPlace = Readonly<{
  sourceId: string;
  unitId: string;
  fence: number;
  month: string;
  /** The keys of what a scan has seen, in place of facts. */
  isSeen?: boolean;
}>;

/** The key of a file with facts. Unit and fence are never used twice, so neither is the key. */
export function insightSegmentKey(organizationId: string, place: SegmentPlace): string {
  const { sourceId, unitId, fence, month, isSeen = false } = place;
  const name = `${month}${isSeen ? '.seen' : ''}.parquet`;
  return `${insightsPrefix(organizationId)}${sourceId}/${unitId}-${fence}/${name}`;
}

/** When the unit of a key of `insightSegmentKey` was claimed, in milliseconds, as its id says; null for any other key. */
export function insightSegmentTime(key: string): number | null {
  const unit =
    /\/insights\/[0-9a-f-]{36}\/([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f-]{17}-\d+\/\d{4}-\d{2}(?:\.seen)?\.parquet$/.exec(
      key,
    );
  return unit ? Number.parseInt(`${unit[1]}${unit[2]}`, 16) : null;
}
