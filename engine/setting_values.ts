import { homedir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { namedToken } from './admin_tokens.ts';

// What the text of a setting has to be, and what it becomes.

const TOKEN_MIN_LENGTH = 32;

export const integer = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^\d{1,12}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(minimum, `must be at least ${minimum}`).max(maximum, `must be at most ${maximum}`));

export const tokens = z
  .string()
  .transform((text) => text.split(',').map((token) => token.trim()))
  .pipe(
    z.array(
      z
        .string()
        .min(TOKEN_MIN_LENGTH, `each token needs at least ${TOKEN_MIN_LENGTH} characters`)
        .regex(/^[\x21-\x7e]+$/, 'tokens are printable ASCII without spaces'),
    ),
  );

export const adminTokens = tokens
  .transform((list) => list.map(namedToken))
  .refine(
    (list) => list.every(({ token }) => token.length >= TOKEN_MIN_LENGTH),
    `each token needs at least ${TOKEN_MIN_LENGTH} characters`,
  )
  // What stands before a colon and is no name would be part of the token, which then fits nobody's.
  .refine(
    (list) => list.every(({ token }) => !token.includes(':')),
    'a name is made of lower case letters, digits and hyphens, begins with a letter, and has at most 40 characters; a token has no colon',
  )
  .refine((list) => new Set(list.map(({ name }) => name)).size === list.length, 'two tokens have the same name')
  .refine((list) => new Set(list.map(({ token }) => token)).size === list.length, 'two names have the same token');

export const postgresUrl = z
  .string()
  .refine((text) => /^postgres(ql)?:\/\//.test(text) && URL.canParse(text), 'must be a postgres:// URL');

export const storageUrl = z
  .string()
  .refine((text) => URL.canParse(text) && /^(file:|s3:\/\/)/.test(text), 'must be a file: or s3: URL')
  .refine((text) => !/^file:/.test(text) || /^file:\/\/\/[^?#]*$/.test(text), 'must be file:///path, an absolute path');

export const httpUrl = z
  .string()
  .refine((text) => /^https?:\/\//i.test(text) && URL.canParse(text), 'must be an http or https URL')
  .refine((text) => !URL.canParse(text) || new URL(text).username === '', 'must not carry a user name');

/** A folder as a person writes it: relative to where we run, or below their home folder. */
export const folder = z
  .string()
  .min(1)
  // A shell expands it, a file of settings or a unit of systemd does not.
  .refine((text) => !/^~[^/]/.test(text), 'the home folder of another user is not looked up: write the whole path')
  .transform((text) => path.resolve(text.replace(/^~(?=\/|$)/, homedir())));
