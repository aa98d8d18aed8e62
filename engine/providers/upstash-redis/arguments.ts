import { z } from 'zod';
import type { ArgumentIssue } from '../tool.ts';
import type { Settings } from './database.ts';

export const key = z.string().min(1).max(1_024).describe('begins with one of the allowed prefixes');
export const keys = z.array(key).min(1).max(100);
export const value = z.string().max(65_536);
export const name = z.string().min(1).max(1_024);
export const names = z.array(name).min(1).max(100);
export const index = z.int().min(0).max(1_000_000_000);

type Keys = Readonly<{ key?: string; keys?: readonly string[]; prefix?: string }>;

/** Every position of a command that names a key is of an allowed prefix. */
export function inScope({ key: one, keys: several = [], prefix }: Keys, settings: Settings | null) {
  const prefixes = settings?.keyScope.prefixes ?? [];
  const given: readonly (readonly [path: ArgumentIssue['path'], text: string | undefined])[] = [
    [['key'], one],
    [['prefix'], prefix],
    ...several.map((text, at) => [['keys', at], text] as const),
  ];
  return given.flatMap(([path, text]): ArgumentIssue[] => {
    if (text === undefined || prefixes.some((allowed) => text.startsWith(allowed))) return [];
    return [{ path, message: 'begins with none of the allowed prefixes', code: 'not_allowed' }];
  });
}
