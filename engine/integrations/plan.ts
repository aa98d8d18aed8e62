import { z } from 'zod';

/** What connecting an account would do (`integration_connection_plan`). */
export const planSchema = z.object({ revision: z.int(), nextRevision: z.int(), anotherAccount: z.boolean() });
