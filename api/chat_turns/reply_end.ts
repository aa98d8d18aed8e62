import { sql } from 'slonik';
import { z } from 'zod';
import type { Queries } from '../../engine/db/call.ts';
import { scoped } from '../../engine/db/scope.ts';

/** More than any token has. */
const END_LENGTH = 8_192;

const endRow = z.object({ text: z.string().nullable() });

/** The end of the text that an `append` of this run would continue; empty where there is none. */
export async function replyEnd(db: Queries, organizationId: string, runId: string): Promise<string> {
  const row = await db.maybeOne(
    scoped(
      organizationId,
      endRow,
      sql.fragment`
        select case when m.parts #>> '{-1,kind}' = 'text' then right(m.parts #>> '{-1,text}', ${END_LENGTH}) end as text
        from app.runs u
        join app.run_requests r on r.organization_id = u.organization_id and r.id = u.run_request_id
        join app.messages m on m.organization_id = r.organization_id and m.id = r.message_id
        where u.organization_id = scope.organization_id and u.id = ${runId}::uuid and u.kind = 'chat'`,
    ),
  );
  return row?.text ?? '';
}
