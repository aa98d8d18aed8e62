import { z } from 'zod';

/** The revision that connecting an account would make (`integration_connection_plan`). */
export const planSchema = z.object({ nextRevision: z.int() });
