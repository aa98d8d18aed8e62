import { z } from 'zod';
import { call } from '../../engine/db/call.ts';
import { organizationId, uuid } from '../fields/ids.ts';
import { type Endpoint, endpoint } from '../http/endpoint.ts';
import { PULL_CHANNEL } from '../run_requests/pull_broker.ts';
import { responseSchema } from './changes.ts';
import {
  getInboxItem,
  inboxItemAnswer,
  inboxItemExample,
  inboxItemSchema,
  inboxListQuery,
  inboxSummarySchema,
  listInboxItems,
  summarizeInbox,
} from './schema.ts';

const ITEM = '/organizations/{organizationId}/human-inbox/{inboxItemId}';
const params = { organizationId, inboxItemId: uuid.describe('The item.') };
const notFound = {
  status: 404,
  code: 'human_inbox_item_not_found',
  when: 'the organization has no such item',
} as const;
const notOpen = { status: 409, code: 'human_inbox_item_not_open', when: 'somebody has handled it, or its task ended' };

const answered = {
  ...inboxItemExample,
  status: 'responded',
  response: 'prices-2026.csv',
  respondedAt: '2026-01-31T10:05:00.000Z',
  updatedAt: '2026-01-31T10:05:00.000Z',
} as const;

/** Contract 4.8. */
export function humanInboxEndpoints(): readonly Endpoint[] {
  return [
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/human-inbox',
      audience: 'owner',
      tag: 'Inbox',
      operationId: 'listHumanInbox',
      summary: 'List what waits for people',
      description: 'Newest first. Without status the open items.',
      params: { organizationId },
      query: inboxListQuery,
      response: { data: z.array(inboxItemSchema), list: true },
      example: { data: [inboxItemExample] },
      handler: ({ db, params, query }) => listInboxItems(db, params.organizationId, query),
    }),
    endpoint({
      method: 'get',
      path: '/organizations/{organizationId}/inbox/summary',
      audience: 'owner',
      tag: 'Inbox',
      operationId: 'summarizeInbox',
      summary: 'Count the open items',
      params: { organizationId },
      response: { data: inboxSummarySchema },
      handler: ({ db, params }) => summarizeInbox(db, params.organizationId),
    }),
    endpoint({
      method: 'get',
      path: ITEM,
      audience: 'owner',
      tag: 'Inbox',
      operationId: 'getHumanInboxItem',
      summary: 'Get an item',
      description: 'Open or not.',
      params,
      response: { data: inboxItemSchema },
      errors: [notFound],
      example: { data: inboxItemExample },
      handler: ({ db, params }) => getInboxItem(db, params.organizationId, params.inboxItemId),
    }),
    endpoint({
      method: 'post',
      path: `${ITEM}/respond`,
      audience: 'owner',
      tag: 'Inbox',
      operationId: 'respondToHumanInboxItem',
      summary: 'Answer a question',
      description:
        'The answer has one consequence. repair: try_again lets the task run again, accept completes it with the refused result (disposition accepted), cancel cancels it. budget: raise gives one allowance more (runs and replans: the default of its kind; a spend limit: as much again as it was set to), cancel cancels. Questions of agents: the answer goes into state.answers of the task, and a task that waited for it goes on. 400 for what is no question, and for a response that has to be one of the options and is not.',
      params,
      body: responseSchema,
      response: { data: inboxItemSchema },
      errors: [notFound, notOpen],
      example: { body: { response: 'prices-2026.csv' }, data: answered },
      decision: { action: 'inbox_item.respond', subject: 'inbox_item', id: ['item', 'id'] },
      async handler({ db, params, body, notify, decision }) {
        const args = {
          organizationId: params.organizationId,
          inboxItemId: params.inboxItemId,
          response: body.response,
          note: body.note,
        };
        const { item } = await call(db, 'human_inbox_respond', args, inboxItemAnswer, decision);
        notify(PULL_CHANNEL);
        return item;
      },
    }),
    endpoint({
      method: 'post',
      path: `${ITEM}/acknowledge`,
      audience: 'owner',
      tag: 'Inbox',
      operationId: 'acknowledgeHumanInboxItem',
      summary: 'Put a notification aside',
      description: 'Nothing follows from it. 400 for what is no notification.',
      params,
      response: { data: inboxItemSchema },
      errors: [notFound, notOpen],
      decision: { action: 'inbox_item.acknowledge', subject: 'inbox_item', id: ['item', 'id'] },
      async handler({ db, params, decision }) {
        const args = { organizationId: params.organizationId, inboxItemId: params.inboxItemId };
        return (await call(db, 'human_inbox_acknowledge', args, inboxItemAnswer, decision)).item;
      },
    }),
  ];
}
