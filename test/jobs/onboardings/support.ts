import type { RequestListener } from 'node:http';
import type { Site } from '../../engine/net/support.ts';
import { html } from '../../engine/website/support.ts';
import { createOnboarding, type Onboarding, placeOf, read, step } from '../../support/onboarding_fixtures.ts';
import type { Sql } from '../../support/transitions.ts';
import { until } from '../../support/wait.ts';

export const PRIVATE = { ALLOW_PRIVATE_ADDRESSES: '1' };

const page = (title: string, links: readonly string[] = []) =>
  html(title, links).replace('<title>', `<meta name="description" content="All about ${title}."><title>`);

export const SHOP: Record<string, string> = {
  '/': page('Acme', ['/about', '/prices']),
  '/about': page('About Acme'),
  '/prices': page('Prices'),
};

/** A small shop; `hold` may keep a response back. */
export function shop(
  hold: (path: string) => Promise<unknown> | undefined = () => undefined,
  pages = SHOP,
): RequestListener {
  return async (req, res) => {
    const path = req.url ?? '/';
    await hold(path);
    const body = pages[path];
    res.writeHead(body === undefined ? 404 : 200, { 'content-type': 'text/html' }).end(body);
  };
}

export async function start(sql: Sql, fields: Record<string, unknown>): Promise<Onboarding> {
  const onboarding = await createOnboarding(sql, fields);
  return step(sql.api, placeOf(onboarding), 'start');
}

export function ended(sql: Sql, onboarding: Onboarding, withinMs?: number): Promise<Onboarding> {
  return until(
    'the research is over',
    async () => {
      const now = await read(sql, placeOf(onboarding));
      return now.status !== 'researching' && now;
    },
    withinMs,
  );
}

export type Evidence = Readonly<{
  id: string;
  title: string;
  status: string;
  provenance_urls: string[];
  sha256: string;
  storage_key: string;
  media_type: string;
}>;

export async function evidenceOf(sql: Sql, onboarding: Onboarding): Promise<Evidence[]> {
  const { rows } = await sql.owner.query(
    `select * from app.context_sources where organization_id = $1 and origin = 'research' order by created_at, id`,
    [onboarding.organization_id],
  );
  return rows as Evidence[];
}

export const codes = (onboarding: Onboarding) => onboarding.review?.warnings.map(({ code }) => code);
export const pathsOf = (site: Site) => site.paths.filter((path) => path !== '/robots.txt');
