import { transform } from 'zod/mini';

/**
 * What `.transform(map)` does, for rows and their columns: `schema.pipe(mapping(map))`. The other gives the function a way to add
 * issues, made anew for each value and for the old generation: each would keep its row alive until the next full collection.
 */
export const mapping = <I, O>(map: (value: I) => O) => transform<I, O>(map);
