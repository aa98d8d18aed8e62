import { createWebClient, type WebClient } from '../../../engine/net/index.ts';
import { type KeptPage, type ReadOptions, type ReadOutcome, readWebsite } from '../../../engine/website/index.ts';
import type { TearDown } from '../../support/database.ts';
import { allows } from '../net/support.ts';

export function openClient(t: TearDown): WebClient {
  const client = createWebClient({ allows, connectMs: 2_000 });
  t.teardown(() => client.close());
  return client;
}

export type Read = ReadOutcome & Readonly<{ kept: KeptPage[]; texts: string[]; addresses: string[] }>;

/** Reads a website to its end. */
export async function readAll(
  client: WebClient,
  website: string,
  options: Partial<Omit<ReadOptions, 'client' | 'website'>> = {},
): Promise<Read> {
  const kept: KeptPage[] = [];
  const keep = async (page: KeptPage) => void kept.push(page);
  const outcome = await readWebsite({ client, website, keep, ...options });
  const addresses = kept.map(({ page }) => new URL(page.url).pathname);
  return { ...outcome, kept, texts: kept.map(({ page }) => page.text), addresses };
}

export type Page = string | Readonly<{ status?: number; headers?: Record<string, string>; body?: string | Buffer }>;

/** A page with a title and links. */
export function html(title: string, links: readonly string[] = [], text = `This is ${title}.`): string {
  const list = links.map((href) => `<li><a href="${href}">${href}</a></li>`).join('');
  return `<!doctype html><html><head><title>${title}</title></head><body><h1>${title}</h1><p>${text}</p><ul>${list}</ul></body></html>`;
}
