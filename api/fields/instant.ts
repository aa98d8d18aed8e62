import { z } from 'zod';
import { mapping } from '../../engine/mapping.ts';

/**
 * A point in time in a request → ISO 8601 UTC with milliseconds. Years 1900 to 9999: what Postgres, JavaScript and
 * people agree on.
 */
export const instant = z.iso
  .datetime({ offset: true, abort: true, message: 'must be an ISO 8601 date-time with Z or an offset' })
  .refine((text) => {
    const year = new Date(text).getUTCFullYear();
    return year >= 1900 && year <= 9999;
  }, 'must lie between the years 1900 and 9999')
  .pipe(mapping((text) => new Date(text).toISOString()));
