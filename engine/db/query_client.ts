import type pg from 'pg';

/**
 * `client.query`, by its callback: the function with which the driver would make a promise of it is assigned to a property, and
 * such functions V8 makes for the old generation. Each would keep what waits for the result, the whole request, alive until
 * the next full collection.
 * @throws what the driver throws
 */
export async function queryClient<R extends pg.QueryResultRow>(
  client: pg.Client,
  query: pg.QueryConfig,
): Promise<pg.QueryResult<R>> {
  try {
    return await new Promise((resolve, reject) => {
      client.query<R>(query, (error, result) => (error ? reject(error) : resolve(result)));
    });
  } catch (error) {
    // Who asked, instead of the socket that the error was read from.
    if (error instanceof Error) Error.captureStackTrace(error);
    throw error;
  }
}
