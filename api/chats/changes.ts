import { z } from 'zod';
import { uuid } from '../fields/ids.ts';
import { removable } from '../fields/merge_patch.ts';
import { unique } from '../organizations/changes.ts';
import { CHAT_STATUSES } from './schema.ts';

const title = z.string().trim().min(1).max(200);

/** Body of the create. */
export const newChatSchema = z.strictObject({ title }).meta({ id: 'NewChat' });

/** Body of the update, a JSON merge patch. */
export const chatPatchSchema = z
  .strictObject({
    title: title.optional(),
    status: z.enum(CHAT_STATUSES).optional().describe('`archived` archives the chat now, `open` restores it.'),
    ...removable({
      settings: z.strictObject(removable({ pinnedTaskIds: unique(uuid, 100).describe('Tasks of the organization.') })),
    }),
  })
  .meta({ id: 'ChatPatch', description: 'A JSON merge patch (RFC 7396): null restores the default.' });
