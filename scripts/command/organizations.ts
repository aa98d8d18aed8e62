import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { OwnerApi } from './api.ts';
import { CommandError, EXIT } from './errors.ts';
import type { Values } from './options.ts';
import type { Output } from './output.ts';
import { type Organization, organizationSchema } from './schemas.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const MAX_SLUG = 63;
/** More than anybody reads; who has more names theirs. */
const MOST = 10_000;
const SHOWN = 5;

const listed = (api: OwnerApi, limit: number) => api.list(organizationSchema, '/organizations', {}, limit);

/** "Lamp & Söhne" → "lamp-soehne"; undefined where no letter is left. */
export function slugOf(name: string): string | undefined {
  const german: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss' };
  const words = name
    .normalize('NFC')
    .toLowerCase()
    .replace(/[äöüß]/g, (letter) => german[letter] ?? letter)
    .normalize('NFD')
    .replace(/\p{Mark}/gu, '')
    .match(/[a-z0-9]+/g);
  return words?.join('-').slice(0, MAX_SLUG).replace(/-$/, '');
}

/** The path of the organization that a command is about: the one that is named, or the only one. @throws CommandError */
export async function organizationPath(api: OwnerApi, named: string | undefined): Promise<string> {
  if (named !== undefined && UUID.test(named)) return `/organizations/${named.toLowerCase()}`;
  const found = await listed(api, named === undefined ? SHOWN + 1 : MOST);
  if (named !== undefined) {
    const one = found.find(({ slug }) => slug === named.toLowerCase());
    if (one) return `/organizations/${one.id}`;
    throw new CommandError(
      EXIT.notFound,
      `there is no organization ${JSON.stringify(named)} (business-runner org list)`,
    );
  }
  const [first, second] = found;
  if (!first) throw new CommandError(EXIT.notFound, 'there is no organization yet: business-runner org create NAME');
  if (!second) return `/organizations/${first.id}`;
  const some = found.slice(0, SHOWN).map(({ slug }) => slug);
  const more = found.length > SHOWN ? ' …' : '';
  throw new CommandError(EXIT.usage, `there are several organizations: give --org, one of ${some.join(', ')}${more}`);
}

function standing({ status, workDispatchStoppedAt }: Organization): string {
  return workDispatchStoppedAt === null ? status : `${status}, dispatch stopped`;
}

export async function organizationList(api: OwnerApi, output: Output, limit: number): Promise<void> {
  const found = await listed(api, limit);
  if (output.json) return output.value(found);
  const columns = [
    { title: 'SLUG', align: 'left', flexible: true },
    { title: 'NAME', align: 'left', flexible: true },
    { title: 'STATUS', align: 'left' },
    { title: 'ID', align: 'left' },
  ] as const;
  const rows = found.map((one) => [one.slug, one.name, standing(one), one.id]);
  output.table({ columns, rows }, 'there is no organization yet: business-runner org create NAME');
}

export async function organizationCreate(api: OwnerApi, output: Output, name: string, values: Values): Promise<void> {
  const slug = values.slug ?? slugOf(name);
  if (slug === undefined) throw new CommandError(EXIT.usage, 'the name has no letters for a slug: give --slug');
  const id = randomUUID();
  const created = await api.post(organizationSchema, `/organizations/${id}`, {
    slug,
    name,
    ...(values.bare ? {} : { provision: true }),
  });
  if (output.json) return output.value(created);
  output.line(`${created.slug} is ${standing(created)}: ${created.name}`);
  output.line(`  id        ${created.id}`);
  if (values.bare) return;
  const profiles = await api.list(z.looseObject({ key: z.string() }), `/organizations/${id}/agent-profiles`, {}, MOST);
  output.line(
    `  agents    ${profiles
      .map(({ key }) => key)
      .sort()
      .join(', ')}`,
  );
  output.progress(`give it work: ${output.call(`task create TITLE --org ${created.slug}`)}`);
}
