import { z } from 'zod';
import { choices } from '../texts.ts';
import type { ArgumentIssue } from '../tool.ts';

export const MAX_ACCOUNTS = 1_000;

export const accountId = z.string().regex(/^[a-z0-9]{1,40}$/, 'must be the id of an ads account');

export const settings = z.strictObject({
  kind: z.literal('x_ads'),
  accountIds: choices(accountId, MAX_ACCOUNTS),
});
export type Settings = z.output<typeof settings>;

/** A token reaches all accounts of its user; tools reach those of the settings. */
export function checkAccount(
  { accountId: chosen }: Readonly<{ accountId: string }>,
  given: Settings | null,
): readonly ArgumentIssue[] {
  if (given?.accountIds.includes(chosen)) return [];
  return [{ path: ['accountId'], message: 'is no ads account of the settings', code: 'not_allowed' }];
}
