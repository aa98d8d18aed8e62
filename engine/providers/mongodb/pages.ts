import type { BSON } from 'mongodb';
import { CursorError } from '../tool.ts';
import { toBson, valueIssues } from './extended_json.ts';

// A page goes on behind the last id of the one before where documents come in the order of their ids: whatever is inserted or deleted
// meanwhile, none is skipped. In another order it goes on behind so many documents.

const MAX_SKIP = 100_000;

export type Position = Readonly<{ after: unknown } | { skip: number }>;

/** @throws CursorError */
export function positionOf(bson: typeof BSON, cursor: string | undefined, isById: boolean): Position {
  if (cursor === undefined) return { skip: 0 };
  const [kind = '', text = ''] = cursor.split('.', 2);
  if (!isById) {
    const skip = kind === 'skip' && /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 0;
    if (skip < 1 || skip > MAX_SKIP) throw new CursorError();
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

/** Null: whoever reads so far should ask for less. */
export const cursorAt = (skip: number) => (skip <= MAX_SKIP ? `skip.${skip}` : null);
