import { z } from 'zod';
import { oauth2Credential } from '../oauth/index.ts';
import type { Access } from '../provider.ts';
import { choices } from '../texts.ts';

export const MAX_REPOSITORIES = 500;

/** GitHub does not tell its names apart by case. */
export const caseless = (name: unknown) => String(name).toLowerCase();

const token = z.strictObject({
  kind: z.literal('github_token'),
  token: z
    .string()
    .max(300)
    .regex(/^(?:github_pat_|gh[pousr]_)[A-Za-z0-9_]{20,}$/, 'must be a token of GitHub'),
});
export const credential = z.discriminatedUnion('kind', [token, oauth2Credential]);
export type Credential = z.output<typeof credential>;

export const secretOf = (given: Credential) => (given.kind === 'github_token' ? given.token : given.accessToken);

export const settings = z.strictObject({
  kind: z.literal('github'),
  owner: z.string().regex(/^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$/, 'must be the name of a user or an organization'),
  /** Names, without the owner. Empty: no repository is allowed. */
  repositories: choices(
    z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,100}$/, 'must be the name of a repository')
      .refine((name) => name !== '.' && name !== '..', 'must be the name of a repository'),
    MAX_REPOSITORIES,
    caseless,
  ),
});
export type Settings = z.output<typeof settings>;
export type Connection = Access<Credential, Settings>;
