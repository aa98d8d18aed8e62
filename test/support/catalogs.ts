import { builtinCatalog, type Catalog, catalogRevision } from '../../engine/catalog/index.ts';
import type { TestApp } from './app.ts';

/** Publishes as `npm run catalog -- publish` does. */
export async function publishCatalog(app: TestApp, catalog: Catalog): Promise<string> {
  const revision = catalogRevision(catalog);
  await app.database.owner.query('select app.agent_catalog_publish($1, $2)', [revision, catalog]);
  return revision;
}

/** The shipped catalog with one template changed. */
export function changedCatalog(key: string, change: (template: Catalog['profiles'][number]) => unknown): Catalog {
  const catalog = structuredClone(builtinCatalog());
  for (const template of catalog.profiles) if (template.key === key) change(template);
  return catalog;
}
