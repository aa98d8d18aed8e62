import type { AdminTransitions } from './transitions.ts';

/** Who sent a request, and about what. */
export type AdminContext = Readonly<{
  /** The one organization that the request is about; null: all of them. */
  organizationId: string | null;
  /** The name of the token that let the request in. */
  admin: string;
  requestId: string;
}>;

declare global {
  namespace Grafast {
    interface Context extends AdminContext {
      transitions: AdminTransitions;
    }
  }
}
