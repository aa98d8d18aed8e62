import { z } from 'zod';
import { ProviderError, undone } from '../outgoing/index.ts';
import { type ArgumentIssue, CursorError, type ReadCall, type ReadResult, toolsOf } from '../tool.ts';
import { type At, type Credential, KEY, read as readJson, type Settings, write as send } from './api.ts';

const { read, write } = toolsOf<Credential, Settings>();

const PAGE = 50;
const LAST_PAGE = 10_000;
const TOO_FAR = 'leads further than 10,000 pages: narrow the arguments, or ask for larger pages';

const id = (what: string) =>
  z
    .string()
    .regex(/^\d{1,20}$/)
    .describe(`id of the ${what}`);
const storeId = id('store, one of the settings');
const pageSize = z.int().min(1).max(100).optional().describe(`by default ${PAGE}`);

const record = z.object({ id: z.string(), attributes: z.record(z.string(), z.unknown()) });
type Record_ = z.output<typeof record>;
const page = z.object({ data: z.array(record), meta: z.object({ page: z.object({ lastPage: z.int().min(0) }) }) });
const one = z.object({ data: record });

/** Without `urls`: who has one of those is let in to a customer's invoices and ways to pay. */
function shown({ id: of, attributes: { urls: _, ...attributes } }: Record_) {
  return { id: of, ...attributes };
}

function inStores(args: Readonly<{ storeId?: string | undefined }>, settings: Settings | null): ArgumentIssue[] {
  if (settings?.storeIds.includes(args.storeId ?? '')) return [];
  return [{ path: ['storeId'], message: 'is no store of the settings', code: 'not_allowed' }];
}

/** Some store is allowed: what is asked for by its own id is compared when it is read. */
function anyStore(_args: unknown, settings: Settings | null): ArgumentIssue[] {
  if (settings && settings.storeIds.length > 0) return [];
  return [{ path: [], message: 'no store is allowed by the settings', code: 'not_allowed' }];
}

type Resource = Readonly<{ type: string; one: string; many: string }>;
const STORES: Resource = { type: 'stores', one: 'store', many: 'stores' };
const PRODUCTS: Resource = { type: 'products', one: 'product', many: 'products' };
const ORDERS: Resource = { type: 'orders', one: 'order', many: 'orders' };
const SUBSCRIPTIONS: Resource = { type: 'subscriptions', one: 'subscription', many: 'subscriptions' };
const INVOICES: Resource = {
  type: 'subscription-invoices',
  one: 'invoice of a subscription',
  many: 'invoices of subscriptions',
};
const CUSTOMERS: Resource = { type: 'customers', one: 'customer', many: 'customers' };

const keyOf = ({ type }: Resource, verb: string) => `lemon_squeezy.${type.replaceAll('-', '_')}.${verb}`;

type Filters = Readonly<Record<string, string | undefined>>;

/** @param isOurs what the key reaches beyond the settings is not for the caller */
async function readPage(
  { context, access, args, cursor = '1' }: ReadCall<{ pageSize?: number | undefined }, Credential, Settings>,
  type: string,
  filters: Filters,
  isOurs: (item: Record_) => boolean,
): Promise<ReadResult> {
  const number = /^[1-9]\d{0,4}$/.test(cursor) ? Number(cursor) : 0;
  if (number < 1) throw new CursorError();
  if (number > LAST_PAGE) throw new CursorError(TOO_FAR);
  const query = new URLSearchParams({ 'page[number]': cursor, 'page[size]': String(args.pageSize ?? PAGE) });
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) query.set(`filter[${name}]`, value);
  const { data, meta } = await readJson(context, access.credential, `/v1/${type}?${query}`, page);
  return { data: data.filter(isOurs).map(shown), nextCursor: number < meta.page.lastPage ? String(number + 1) : null };
}

const storeOf = ({ attributes }: Record_) => String(attributes['store_id']);

/** One of another store is none that there is. @throws ProviderError, the signal's reason */
async function readOwn({ context, access }: At, { type }: Resource, of: string): Promise<Record_> {
  const { data } = await readJson(context, access.credential, `/v1/${type}/${of}`, one);
  const store = type === STORES.type ? data.id : storeOf(data);
  if (access.settings?.storeIds.includes(store)) return data;
  throw new ProviderError(KEY, 'not_found', 'There is no such thing in the stores of the settings.');
}

function listTool<I extends z.ZodRawShape>(
  resource: Resource,
  input: I,
  filtersOf: (args: z.output<z.ZodObject<I>>) => Filters,
) {
  const whole = { storeId, pageSize };
  return read({
    key: keyOf(resource, 'list'),
    title: `List ${resource.many}`,
    description: `Lists ${resource.many} of a store, newest first.`,
    input: { ...whole, ...input },
    check: (args, settings) => inStores(args as { storeId?: string }, settings),
    read(call) {
      const args = call.args as z.output<z.ZodObject<I>> & z.output<z.ZodObject<typeof whole>>;
      const filters = { store_id: args.storeId, ...filtersOf(args) };
      return readPage({ ...call, args }, resource.type, filters, (item) => storeOf(item) === args.storeId);
    },
  });
}

const getTool = (resource: Resource, name: string) =>
  read({
    key: keyOf(resource, 'get'),
    title: `Read ${/^[aeiou]/.test(resource.one) ? 'an' : 'a'} ${resource.one}`,
    description: `Reads ${/^[aeiou]/.test(resource.one) ? 'an' : 'a'} ${resource.one} of a store of the settings.`,
    input: { [name]: id(resource.one) },
    check: anyStore,
    read: async (call) => ({ data: shown(await readOwn(call, resource, String(call.args[name]))) }),
  });

const refunded = z.object({
  data: z.object({
    id: z.string(),
    attributes: z.looseObject({
      status: z.string().optional(),
      refunded: z.boolean(),
      refunded_amount: z.int().optional(),
      currency: z.string().optional(),
    }),
  }),
});

const refundOf = ({ data: { id: of, attributes } }: z.output<typeof refunded>) => ({
  id: of,
  status: attributes.status ?? null,
  refunded: attributes.refunded,
  refundedAmount: attributes.refunded_amount ?? null,
  currency: attributes.currency ?? null,
});

export const tools = [
  read({
    key: keyOf(STORES, 'list'),
    title: 'List stores',
    description: 'Lists the stores of the settings. A page may hold fewer than there is room for.',
    input: { pageSize },
    check: anyStore,
    read: (call) =>
      readPage(call, STORES.type, {}, (item) => call.access.settings?.storeIds.includes(item.id) ?? false),
  }),
  getTool(STORES, 'storeId'),
  listTool(PRODUCTS, {}, () => ({})),
  listTool(ORDERS, { userEmail: z.email().optional() }, ({ userEmail }) => ({ user_email: userEmail })),
  getTool(ORDERS, 'orderId'),
  listTool(
    SUBSCRIPTIONS,
    {
      status: z.enum(['on_trial', 'active', 'paused', 'past_due', 'unpaid', 'cancelled', 'expired']).optional(),
      userEmail: z.email().optional(),
    },
    ({ status, userEmail }) => ({ status, user_email: userEmail }),
  ),
  getTool(SUBSCRIPTIONS, 'subscriptionId'),
  listTool(
    INVOICES,
    { status: z.enum(['pending', 'paid', 'void', 'refunded', 'partial_refund']).optional() },
    ({ status }) => ({ status }),
  ),
  listTool(CUSTOMERS, { email: z.email().optional() }, ({ email }) => ({ email })),
  getTool(CUSTOMERS, 'customerId'),
  write({
    key: keyOf(ORDERS, 'refund'),
    title: 'Refund an order',
    description: 'Pays an order back, whole or in part. The customer gets the money.',
    risk: 'high',
    input: {
      orderId: id('order'),
      amount: z
        .int()
        .min(1)
        .optional()
        .describe('in minor units of the order’s currency; without it what is left of the order'),
    },
    check: anyStore,
    summary: ({ args, settings }) =>
      `Refund ${args.amount === undefined ? 'all that is left' : `${args.amount} (in minor units of the order’s currency)`} of order ${
        args.orderId
      } at Lemon Squeezy, in one of the stores ${settings?.storeIds.join(', ').slice(0, 300) ?? ''}`,
    async execute(call) {
      const { orderId, amount } = call.args;
      await readOwn(call, ORDERS, orderId).catch((error: unknown) => {
        throw undone(error, KEY, call.context.signal);
      });
      const attributes = amount === undefined ? {} : { attributes: { amount } };
      const data = { type: ORDERS.type, id: orderId, ...attributes };
      return refundOf(await send(call, `/v1/orders/${orderId}/refund`, data, refunded));
    },
    /** An order that was paid back whole says so. A part of it may be of another refund. */
    async lookUp({ context, access, args }) {
      const found = await readJson(context, access.credential, `/v1/orders/${args.orderId}`, refunded);
      const isDone = args.amount === undefined && found.data.attributes.refunded;
      return isDone ? { outcome: 'found', result: refundOf(found) } : { outcome: 'none' };
    },
  }),
];
