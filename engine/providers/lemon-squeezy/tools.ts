import { z } from 'zod';
import { inputSchema, type Tool } from '../provider.ts';

const page = {
  pageNumber: z.int().min(1).max(10_000).optional(),
  pageSize: z.int().min(1).max(100).optional(),
};
const storeId = z
  .string()
  .regex(/^\d{1,20}$/)
  .describe('id of a store of the settings');

const list = (key: string, title: string, more: z.ZodRawShape = {}): Tool => ({
  key: `lemon_squeezy.${key}.list`,
  title: `List ${title}`,
  description: `Lists ${title} of a store, newest first.`,
  effect: 'read',
  risk: 'low',
  scopes: [],
  inputSchema: inputSchema({ storeId, ...page, ...more }),
});

export const tools: readonly Tool[] = [
  list('products', 'products'),
  list('orders', 'orders', { userEmail: z.email().optional() }),
  list('subscriptions', 'subscriptions', {
    status: z.enum(['on_trial', 'active', 'paused', 'past_due', 'unpaid', 'cancelled', 'expired']).optional(),
  }),
  list('subscription_invoices', 'invoices of subscriptions', {
    status: z.enum(['pending', 'paid', 'void', 'refunded', 'partial_refund']).optional(),
  }),
  list('customers', 'customers', { email: z.email().optional() }),
  {
    key: 'lemon_squeezy.orders.refund',
    title: 'Refund an order',
    description: 'Pays an order back, whole or in part. The customer gets the money.',
    effect: 'write',
    risk: 'high',
    scopes: [],
    inputSchema: inputSchema({
      orderId: z.string().regex(/^\d{1,20}$/),
      amount: z.int().min(1).optional().describe('in minor units; without it the whole order'),
    }),
  },
];
