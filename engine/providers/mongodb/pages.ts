import type { BSON } from 'mongodb';
import { CursorError } from '../tool.ts';
import { toBson, valueIssues } from './extended_json.ts';

// A page goes on behind the last id of the one before where documents come in the order of their ids: whatever is inserted or deleted
// meanwhile, none is skipped. In another order it goes on behind so many documents.

/** The server reads all that it skips. */
const MAX_SKIP = 100_000;
const TOO_FAR =
  'leads more than 100,000 documents on: narrow the arguments, or read documents in the order of their ids';

export type Position = Readonly<{ after: unknown } | { skip: number }>;

/** @throws CursorError */
export function positionOf(bson: typeof BSON, cursor: string | undefined, isById: boolean): Position {
  if (cursor === undefined) return { skip: 0 };
  const [kind = '', text = ''] = cursor.split('.', 2);
  if (!isById) {
    const skip = kind === 'skip' && /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 0;
    if (skip < 1) throw new CursorError();
    if (skip > MAX_SKIP) throw new CursorError(TOO_FAR);
    return { skip };
  }
  try {
    const { id }: { id?: unknown } = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (kind !== 'id' || id === undefined || !valueIssues(id, []).next().done) throw new CursorError();
    return { after: toBson(bson, id) };
  } catch {
    throw new CursorError();
  }
}

export const cursorAfter = (bson: typeof BSON, id: unknown) =>
  `id.${Buffer.from(bson.EJSON.stringify({ id }, { relaxed: false })).toString('base64url')}`;

export const cursorAt = (skip: number) => `skip.${skip}`;
