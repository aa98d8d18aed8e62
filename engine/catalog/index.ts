export { type Catalog, type CatalogProfile, catalogProfileSchema, catalogRevision, catalogSchema } from './catalog.ts';
export { builtinCatalog, publishBuiltinCatalog } from './publish.ts';
