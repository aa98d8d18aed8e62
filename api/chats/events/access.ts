import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../../engine/db/call.ts';
import { scoped } from '../../../engine/db/scope.ts';
import { type ChatStream, endStream } from './stream.ts';
import type { Viewer } from './viewer.ts';

const memberRow = z.object({ subjects: z.array(z.string()) });

/** Which of these are members; undefined when the organization is gone, and with it all that there was to see. */
async function readMembers(
  db: Queries,
  organizationId: string,
  subjects: ReadonlySet<string>,
): Promise<ReadonlySet<string> | undefined> {
  const found = await db.maybeOne(
    scoped(
      organizationId,
      memberRow,
      sql.fragment`
        select array(
          select m.subject
          from app.organization_members m
          where m.organization_id = scope.organization_id
            and m.subject = any(${sql.array([...subjects], 'text')})) as subjects`,
    ),
  );
  return found ? new Set(found.subjects) : undefined;
}

/**
 * Ends the streams of one organization whose token has expired or whose subject is no member any more: whoever opened
 * them connects again, and is refused. Members are asked for at most once in `holdsMs`, all in one query.
 */
export async function endUnauthorized(
  db: Queries,
  organizationId: string,
  streams: Iterable<ChatStream>,
  holdsMs: number,
): Promise<void> {
  const now = performance.now();
  const due = new Map<ChatStream, Viewer>();
  for (const stream of streams) {
    const { viewer } = stream;
    if (!viewer || stream.closing) continue;
    if (viewer.expiresAt <= Date.now()) endStream(stream);
    else if (now - viewer.checkedAt >= holdsMs) due.set(stream, viewer);
  }
  if (due.size === 0) return;
  const members = await readMembers(db, organizationId, new Set(Array.from(due.values(), ({ subject }) => subject)));
  if (!members) return;
  for (const [stream, viewer] of due) {
    if (members.has(viewer.subject)) viewer.checkedAt = now;
    else endStream(stream);
  }
}
