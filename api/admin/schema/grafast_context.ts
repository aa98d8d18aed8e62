import type { AdminContext } from '../context.ts';
import type { AdminTransitions } from '../transitions.ts';

declare global {
  namespace Grafast {
    interface Context extends AdminContext {
      transitions: AdminTransitions;
    }
  }
}
