import path from 'node:path';
import type { Access } from '../../engine/db/schema/access.ts';
import { RAISED_IN_SQL } from '../docs/raised_in_sql.ts';
import { type Finding, findings, type Source } from './text.ts';

const CREATES = /\bcreate or replace function app\.(\w+)/g;

function declared(access: Access, name: string): Readonly<{ owner: string; called: boolean }> {
  const owner = Object.entries(access.owners).find(([, names]) => names.includes(name))?.[0] ?? access.defaultOwner;
  const called = Object.values(access.execute).some((nouns) => Object.values(nouns).flat().includes(name));
  return { owner, called };
}

/** A file of functions/ or triggers/: one function, named like it, with a head. */
export function functionFile(source: Source, access: Access): Finding[] {
  const name = path.posix.basename(source.path, '.sql');
  const found: Finding[] = [];
  const say = (at: number, message: string) => found.push({ at, message });
  const created = [...source.code.matchAll(CREATES)].map((match) => match[1]);
  if (created.join() !== name) say(0, `the file creates app.${name} and no other function`);
  if (!source.text.startsWith('-- ')) say(0, 'a comment at the head says what the function does');
  found.push(
    ...findings(
      source,
      /^\s*(?:alter|grant|revoke)\b|\bset search_path\b/gm,
      () => 'owner, rights and search path are declared in access.json',
    ),
  );
  const { owner, called } = declared(access, name);
  const at = source.code.indexOf('(');
  const definer = /\bsecurity definer\b/.test(source.code);
  if (
    definer &&
    owner === 'runner_scoped' &&
    !/\breturns trigger\b/.test(source.code) &&
    !/^\(\s*p_organization_id uuid\b/.test(source.code.slice(at))
  )
    say(at, 'a transition of a tenant takes p_organization_id first');
  if (called) {
    const head = source.text.slice(0, source.text.indexOf('create or replace function'));
    const text = source.text.replaceAll(/--.*$/gm, '');
    for (const [, status, code = ''] of text.matchAll(RAISED_IN_SQL)) {
      if (!head.includes(code)) say(0, `the head does not name ${status} ${code}, which it raises`);
    }
  }
  return found;
}
